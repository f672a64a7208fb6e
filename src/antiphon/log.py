"""Logging: one line per request and run, as text or JSON, on stderr.

Decides the format. Nothing is set up at import; `setup` is called by the command line.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Literal


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def setup(level: str, form: Literal["text", "json"]) -> None:
    """Send the logs of antiphon and uvicorn to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(_Json() if form == "json" else text)
    for name in ("antiphon", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        # What uvicorn reports as an error is a client that left or a forced end: it is ordinary,
        # and what is our fault is logged under the request id.
        logger.setLevel(level.upper() if name == "antiphon" else "CRITICAL")
        logger.propagate = False
