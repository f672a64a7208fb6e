"""The default model: found where it may lie, fetched only with its right checksum."""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon.engines import models

CONTENT = b"GGUF and so on"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no installed package, and a default model of a few bytes."""
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    monkeypatch.setattr(models, "DISTRIBUTION", "no-such-distribution")
    monkeypatch.setattr(models, "SIZE", len(CONTENT))
    monkeypatch.setattr(models, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return tmp_path / "models"


def pip_brings(
    monkeypatch: pytest.MonkeyPatch, content: bytes | None, stderr: str = ""
) -> list[Sequence[str]]:
    """Let pip leave a wheel with this content, or fail. Returns the commands that ran."""
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if content is not None:
            folder = Path(command[command.index("--dest") + 1])
            with zipfile.ZipFile(folder / "model.whl", "w") as wheel:
                wheel.writestr(f"package/{models.FILE}", content)
        return subprocess.CompletedProcess(command, int(content is None), "", stderr)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_a_model_that_is_nowhere_is_refused_with_the_way_to_get_it(cache: Path) -> None:
    """N1, N8: nothing is downloaded while serving; one line says what to do."""
    with pytest.raises(models.ModelError, match="antiphon models pull"):
        models.find_default()


def test_a_pulled_model_is_found_and_not_pulled_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pip_brings(monkeypatch, CONTENT)
    said: list[str] = []
    path = models.pull_default(said.append)
    assert path.read_bytes() == CONTENT
    assert models.find_default() == path == models.pull_default(said.append)
    assert len(commands) == 1
    assert commands[0][1:4] == ["-m", "pip", "download"]
    assert commands[0][-1] == f"no-such-distribution=={models.VERSION}"
    assert any("downloading" in line for line in said)


def test_half_a_model_in_the_cache_is_not_taken(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / models.FILE).write_bytes(CONTENT[:5])
    with pytest.raises(models.ModelError):
        models.find_default()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"GGUF and so no", "wrong checksum"), (b"short", "does not contain")],
)
def test_what_is_not_the_model_is_not_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    pip_brings(monkeypatch, content)
    with pytest.raises(models.ModelError, match=message):
        models.pull_default(lambda _: None)
    assert list(cache.iterdir()) == []


def test_a_failing_pip_is_told_in_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_brings(monkeypatch, None, "WARNING: retrying\nERROR: No matching distribution\n")
    with pytest.raises(models.ModelError, match=r"^pip cannot .*: No matching distribution$"):
        models.pull_default(lambda _: None)


def test_a_missing_pip_is_told_with_the_way_to_get_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(models.ModelError, match="ensurepip"):
        models.pull_default(lambda _: None)


def test_the_installed_package_is_found_without_importing_it() -> None:
    """N1: from an installed package."""
    try:
        importlib.metadata.distribution(models.DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{models.DISTRIBUTION} is not installed")
    assert models.find_default().name == models.FILE
