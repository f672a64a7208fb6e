"""The import rules of docs/architecture.md, and the size of a file.

Read from the source text, so that an import inside a function counts too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "antiphon"
MAX_LINES = 450

# "" is antiphon/__init__.py, which holds the version and nothing else.
LEAVES = {"", "errors", "ids", "sse", "log", "metrics", "trace"}

# What each part may import from antiphon besides itself.
RULES: dict[str, set[str]] = {
    "schema": set(),
    "engine": set(),
    "store": set(),
    "text": {"engine"},
    "core": {"schema", "engine", "store"} | LEAVES,
    "http": {"core", "schema"} | LEAVES,
    "chat": {"engine"} | LEAVES,
    "engines": {"engine", "text"} | LEAVES,
    "config": {"options"},
    "options": set(),
    "cli": {"", "app", "config", "options", "engine"},
    "__main__": {"cli"},
} | {leaf: LEAVES for leaf in LEAVES}
# `app` puts everything together, so it has no entry.
UNRESTRICTED = {"app"}

CLIENTS = {"aiohttp", "httpx", "httpx2", "requests", "urllib3"}
FORBIDDEN: dict[str, set[str]] = {
    "core": CLIENTS | {"starlette", "uvicorn"},
    "http": CLIENTS,
    "schema": CLIENTS | {"starlette", "uvicorn"},
    "store": CLIENTS | {"starlette", "uvicorn", "pydantic"},
    "text": CLIENTS | {"starlette", "uvicorn", "pydantic"},
}
# These take nothing from outside the standard library.
STDLIB_ONLY = {"engine", "config", "options", "ids"}

FILES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The package or module directly under antiphon that a file belongs to."""
    first = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno} is a relative import"
            module = node.module or ""
            if module == "antiphon":
                yield from ((node.lineno, target(alias.name)) for alias in node.names)
            else:
                yield node.lineno, module


def target(name: str) -> str:
    """`from antiphon import name`: a module of that name, or the package itself."""
    exists = (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()
    return f"antiphon.{name}" if exists else "antiphon"


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_imports_only_what_its_part_may(path: Path) -> None:
    part = part_of(path)
    if part in UNRESTRICTED:
        return
    assert part in RULES, f"{part} has no import rule: add it here and to docs/architecture.md"
    for line, name in imports_of(path):
        package, _, rest = name.partition(".")
        where = f"{name_of(path)}:{line}"
        if package == "antiphon":
            imported = rest.partition(".")[0]
            assert imported in RULES[part] | {part}, (
                f"{where} imports {name}, but {part} may only import "
                f"{', '.join(sorted(RULES[part])) or 'itself'}"
            )
            continue
        assert package not in FORBIDDEN.get(part, set()), f"{where}: {part} must not use {name}"
        if part in STDLIB_ONLY:
            assert package in sys.stdlib_module_names, (
                f"{where}: {part} uses the standard library only, not {name}"
            )


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_is_long(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, (
        f"{name_of(path)} has {lines} lines, more than {MAX_LINES}: it holds more than one idea"
    )


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_module_says_what_it_decides(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))
    assert not module.body or ast.get_docstring(module), f"{name_of(path)} has no docstring"
