"""How a worker is started: its command line and its environment.

Decides the flags, which are those of llama-server for the packaged worker too, and what goes
wrong in words of the operator. Knows no process and no HTTP.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import antiphon
from antiphon.engines.llamacpp.config import LlamaConfig, physical_cores

PACKAGE = "antiphon.engines.llamacpp"
# Requests that are not generations: counting tokens, looking at the slots, health.
_EXTRA_HTTP_THREADS = 8

_COMPLAINT = re.compile("error|failed|insufficient|assert", re.IGNORECASE)
_PREFIX = re.compile(r"^[\d.]+ [A-Z] +")


def command(config: LlamaConfig, ctx_size: int) -> list[str]:
    """The command line for slots of `ctx_size` tokens. Port 0: the system picks a free one."""
    threads = str(config.threads or physical_cores())
    batch = str(config.batch)
    flags = {
        "--model": str(config.model_path),
        "--host": "127.0.0.1",
        "--port": "0",
        "--ctx-size": str(ctx_size * config.slots),
        "--parallel": str(config.slots),
        "--batch-size": batch,
        "--ubatch-size": batch,
        "--threads": threads,
        "--threads-batch": threads,
        "--threads-http": str(config.slots + _EXTRA_HTTP_THREADS),
        "--cache-ram": str(config.cache_ram_mib),
        # Prompts are rendered here. The model's own template, if broken, would fail the start.
        "--chat-template": "chatml",
    }
    words = [word for pair in flags.items() for word in pair]
    # -P: a module in the current directory must not be taken for one of ours.
    python = [sys.executable, "-P", "-m"]
    if config.llama_server is None:
        return [*python, f"{PACKAGE}.worker", *words, "--slots"]
    return [*python, f"{PACKAGE}.guard", str(config.llama_server), *words, "--slots"]


def environment(key: str) -> dict[str, str]:
    """The child's environment: ours without flags in disguise, with the key, and a path to us."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")}
    root = str(Path(antiphon.__file__).parents[1])
    path = os.pathsep.join(filter(None, (root, kept.get("PYTHONPATH"))))
    return {**kept, "LLAMA_API_KEY": key, "PYTHONPATH": path}


def why_it_failed(lines: Sequence[str], code: int, model: Path) -> str:
    """One line for the operator, from the last lines of standard error and the exit code."""
    text = "\n".join(lines)
    if "No module named 'xllamacpp'" in text:
        return "the llama.cpp library is missing: install antiphon[llamacpp]"
    if "libgomp" in text:
        return "llama.cpp needs the system library libgomp: install the package libgomp1"
    if "import failed" in text:
        return f"the llama.cpp library cannot be loaded: {lines[-1]}"
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return f"llama.cpp was killed while loading {model}: is there enough memory?"
    if code == 127:
        return lines[-1] if lines else "llama-server cannot be started"
    # The first complaint is the cause, the others are its consequences.
    reason = _telling(lines) or f"exit code {code}"
    return f"llama.cpp cannot load {model}: {reason}"


def how_it_ended(lines: Sequence[str], code: int) -> str:
    """The end of a worker that had been serving, as the rest of a sentence about it."""
    if code == -signal.SIGKILL:
        return "was killed"
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    reason = _telling(list(reversed(lines)))
    return f"{how} ({reason})" if reason else how


def _telling(lines: Sequence[str]) -> str:
    """The first of the lines that tells of an error, without time and level; else the first."""
    line = next((line for line in lines if _COMPLAINT.search(line)), lines[0] if lines else "")
    return _PREFIX.sub("", line)
