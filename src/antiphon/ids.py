"""Ids and the clock, the two things that differ from run to run.

Decides the form of every id (contract O4). Tests replace the whole object.
"""

from __future__ import annotations

import secrets
import time

PREFIXES = ("resp", "msg", "rs", "fc", "fco", "ctc", "cto", "call", "cmp", "conv", "req", "item")


class Ids:
    """Makes ids and tells the time."""

    def new(self, prefix: str) -> str:
        """A fresh id such as `msg_` and 32 hex digits."""
        return f"{prefix}_{secrets.token_hex(16)}"

    def now(self) -> int:
        """Unix time in whole seconds."""
        return int(time.time())
