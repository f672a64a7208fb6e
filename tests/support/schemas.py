"""The JSON schema test suite as a judge of our grammars.

The suite comes with the sources of the `jsonschema` package, which pip fetches once into a
cache folder. Where no index can be reached there is no suite.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llguidance import LLMatcher, LLTokenizer

from antiphon.engine.errors import ConstraintRejected
from antiphon.engine.types import JsonOutput, Prompt, Turn
from antiphon.text import grammar

NAME, VERSION = "jsonschema", "4.26.0"
DRAFTS = ("draft2020-12", "draft7")
_TOKENS = LLTokenizer("byte")


class Unreachable(Exception):
    """The suite is not in the cache and cannot be fetched. The message says why."""


@dataclass
class Coverage:
    """What became of the tests of a draft.

    `counts`: tests by outcome. `wrong`: invalid documents that were accepted. `seconds`: how
    long each schema took to be checked and compiled, also those that were refused.
    """

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def fetch() -> Path:
    """The folder that has one folder of tests per draft.

    Raises:
        Unreachable: it cannot be had.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "antiphon" / "tests"
    archive = cache / f"{NAME}-{VERSION}.tar.gz"
    if not archive.exists():
        _download(archive)
    folder = cache / f"{NAME}-{VERSION}" / "json" / "tests"
    if not folder.is_dir():
        with tarfile.open(archive) as packed:
            packed.extractall(cache, filter="data")
    return folder


def _download(archive: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", NAME, f"{NAME}=={VERSION}"]
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        result = subprocess.run(
            [*command, "--dest", folder], capture_output=True, text=True, timeout=50, check=False
        )
        fetched = Path(folder, archive.name)
        if not fetched.exists():
            raise Unreachable(result.stderr.strip().splitlines()[-1] if result.stderr else "?")
        fetched.replace(archive)


def judge(folder: Path) -> Coverage:
    """Try every document of the suite against the grammar of its schema.

    Schemas that are just `true` or `false` are left out: the API takes objects only.
    """
    coverage = Coverage()
    for case in _cases(folder):
        schema = case["schema"]
        if not isinstance(schema, dict):
            continue
        prompt = Prompt("m", (Turn("user", "x"),), output=JsonOutput(schema))
        began = time.perf_counter()
        try:
            made = grammar.build(prompt, None, None)
        except ConstraintRejected:
            coverage.counts["refused"] += len(case["tests"])
            continue
        finally:
            coverage.seconds.append(time.perf_counter() - began)
        assert made is not None
        for test in case["tests"]:
            outcome = _outcome(_accepts(made, test["data"]), test["valid"])
            coverage.counts[outcome] += 1
            if outcome == "accepted and wrong":
                place = f"{case['file']}: {case['description']}: {test['description']}"
                coverage.wrong.append(place)
    return coverage


def _cases(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        for case in json.loads(path.read_text("utf-8")):
            yield {**case, "file": path.name}


def _accepts(made: str, data: Any) -> bool:
    tokens = _TOKENS.tokenize_str(json.dumps(data, ensure_ascii=False))
    matcher = LLMatcher(_TOKENS, made)
    return matcher.try_consume_tokens(tokens) == len(tokens) and bool(matcher.is_accepting())


def _outcome(accepted: bool, valid: bool) -> str:
    if accepted:
        return "accepted and right" if valid else "accepted and wrong"
    return "valid but rejected" if valid else "rejected and right"
