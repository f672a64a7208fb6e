"""What the server costs, beside what it stands on. `python -m benchmarks` prints ratios."""
