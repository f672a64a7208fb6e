"""`python -m benchmarks [--quick] [--json FILE] [NAME …]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from pathlib import Path

from benchmarks import chain, decode, echo, events, schemas, startup

ALL = {
    "events": events.run,
    "decode": decode.run,
    "chain": chain.run,
    "startup": startup.run,
    "schemas": schemas.run,
    "echo": echo.run,
}


def main() -> int:
    """Run the named benchmarks, or all of them, one after the other."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ALL))
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one line per result")
    options = parser.parse_args()
    if unknown := set(options.names) - set(ALL):
        parser.error(f"there is no benchmark '{unknown.pop()}'")
    print(
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    )
    for name in options.names or ALL:
        began = time.perf_counter()
        rows = asyncio.run(ALL[name](quick=options.quick))
        print(f"{name} ({time.perf_counter() - began:.0f} s)")
        for row in rows:
            print("  " + "  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
            if options.json:
                with options.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"benchmark": name, **row}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
