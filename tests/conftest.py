"""What every test gets: asyncio as the backend, and an environment without settings in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

PREFIXES = ("ANTIPHON_", "LLAMA_ARG_", "MLXCEL_")
# Where pulled models lie is no setting: a test of the real engine may need it.
KEPT = {"ANTIPHON_CACHE"}


# A busy machine is no fault of the code: how long an example takes decides nothing.
settings.register_profile("antiphon", deadline=None)
settings.load_profile("antiphon")


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of tests marked `anyio`."""
    return "asyncio"


@pytest.fixture(scope="session")
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where servers of the tests keep their key."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, state_folder: Path) -> None:
    """Settings of the shell that runs the tests must not reach them, nor they its home."""
    for name in os.environ:
        if name.startswith(PREFIXES) and name not in KEPT:
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(state_folder))
