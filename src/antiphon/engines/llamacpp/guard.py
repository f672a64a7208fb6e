"""Runs a program that must not outlive us: `guard PROGRAM ARGUMENTS…`.

Decides only when the program ends: with its parent, which is when standard input ends. Used
for a llama-server binary, which does not look at its standard input itself. Imports nothing
of this project.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main() -> None:
    """Exit with the program's own code; 127 where it cannot be started."""
    try:
        program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.stderr.write(f"{sys.argv[1]} cannot be started: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)

    def end_with_parent() -> None:
        sys.stdin.buffer.read()
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # with whatever the program has started, and us
        program.kill()

    threading.Thread(target=end_with_parent, daemon=True).start()
    code = program.wait()
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
