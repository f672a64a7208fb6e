"""Settings of the embedded engine, and the defaults that depend on the machine.

Decides nothing about the process that runs: `command` turns these settings into flags.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_CONTEXT = 8192
_CPUS = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """How one model is served.

    `slots` generations run at once, `waiting` more may queue. `ctx_size` is in tokens for
    each slot; 0 means the model's own, at most 8192, because its memory is taken at start.
    `threads` 0 means the physical cores. `batch` is how many prompt tokens are computed in
    one go: a cancelled request is let go of after at most two of them, and other streams wait
    for one per token, so that a GPU wants more. `cache_ram_mib`
    bounds the cache of prompts that are in no slot. `llama_server` names a llama-server
    binary to run instead of the packaged library. `template` replaces the model's chat
    template. `tool_format` and `reasoning_format` name how calls and traces are written, or
    None for what the template shows. A worker that answers nothing for `hang_seconds` is restarted.
    """

    model_path: Path
    model_id: str
    names: tuple[str, ...] = ()
    slots: int = 4
    ctx_size: int = 0
    threads: int = 0
    batch: int = 64
    cache_ram_mib: int = 256
    waiting: int = 64
    llama_server: Path | None = None
    template: str | None = None
    tool_format: str | None = None
    reasoning_format: str | None = None
    hang_seconds: float = 30.0


def physical_cores() -> int:
    """Cores that this process may use, without hyper-threads. At least 1.

    More threads than cores make every token slower: they wait for each other spinning.
    """
    try:
        cpus = os.sched_getaffinity(0)
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
    cores = {_core(cpu) for cpu in cpus}
    return max(1, min(len(cores), _quota()))


def _core(cpu: int) -> str:
    try:
        return (_CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def _quota() -> int:
    """How many cores a container may use up."""
    try:
        quota, period = _QUOTA.read_text().split()
        return max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        return os.cpu_count() or 1
