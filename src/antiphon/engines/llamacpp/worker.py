"""The child process of the embedded engine: llama.cpp's own HTTP server, out of `xllamacpp`.

Decides nothing: it takes the flags of the `llama-server` program that the engine passes, so
that the engine cannot tell one from the other. It ends when its standard input does, which
is when the parent has died. Imports nothing of this project.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

# The server writes errors only; the address is written by `main`.
_ERRORS_ONLY = 1


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--chat-template", default="chatml")
    parser.add_argument("--slots", action="store_true")
    for flag, default in (
        ("--port", 0),
        ("--ctx-size", 0),
        ("--parallel", 1),
        ("--batch-size", 64),
        ("--ubatch-size", 64),
        ("--threads", 1),
        ("--threads-batch", 1),
        ("--threads-http", 8),
        ("--cache-ram", 256),
    ):
        parser.add_argument(flag, type=int, default=default)
    return parser.parse_args(arguments)


def _params(library: Any, flags: argparse.Namespace) -> Any:
    devices = library.get_device_info()
    params = library.CommonParams()
    params.model.path = flags.model
    params.hostnames, params.port = [flags.host], flags.port
    params.api_keys = [os.environ["LLAMA_API_KEY"]]
    params.n_ctx, params.n_parallel = flags.ctx_size, flags.parallel
    params.n_batch, params.n_ubatch = flags.batch_size, flags.ubatch_size
    params.cpuparams.n_threads = flags.threads
    params.cpuparams_batch.n_threads = flags.threads_batch
    params.n_threads_http = flags.threads_http
    params.cache_ram_mib = flags.cache_ram
    params.chat_template = flags.chat_template
    params.endpoint_slots = flags.slots
    # How much fits on a GPU is found out by loading the model once more; a CPU has no choice.
    params.fit_params = any("CPU" not in device["type"].name for device in devices)
    params.ui = False
    params.verbosity = _ERRORS_ONLY
    return params


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    """Serve until standard input ends. Exit code 3: the model could not be loaded."""
    flags = _parse(sys.argv[1:])
    try:
        import xllamacpp as library
    except ImportError as error:
        _say(f"import failed: {error}")
        os._exit(3)
    try:
        server = library.Server(_params(library, flags))
    except RuntimeError:
        os._exit(3)  # the reason is on standard error already
    _say(f"listening on {server.listening_address}")
    sys.stdin.buffer.read()
    # Without destructors: they crash where a generation is running.
    os._exit(0)


if __name__ == "__main__":
    main()
