"""The embedded engine with the default model, behind a server, for tests over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon.engine.types import Prepared, Prompt
from antiphon.engines import models
from antiphon.engines.llamacpp.config import LlamaConfig
from antiphon.engines.llamacpp.engine import LlamaEngine

TEMPLATES = Path(__file__).parents[1] / "text" / "templates"
SLOTS, WINDOW = 4, 2048


def model_path() -> Path:
    """The file of the default model; the test is skipped where it is not installed."""
    try:
        return models.find_default()
    except models.ModelError as error:
        pytest.skip(str(error))


def config(**changes: Any) -> LlamaConfig:
    """Settings of an engine that is quickly there. Its model is called `default`."""
    settings: dict[str, Any] = {"slots": SLOTS, "ctx_size": WINDOW, **changes}
    return LlamaConfig(model_path(), "default", **settings)


def template(name: str) -> str:
    """A chat template of the tests."""
    return (TEMPLATES / f"{name}.jinja").read_text("utf-8")


class Told(LlamaEngine):
    """The real engine, whose model is made to say `said` by a literal grammar.

    What a tiny model would never say by itself (a trace, say) is so generated, token by token.
    None leaves the model alone.
    """

    said: str | None = None

    async def prepare(self, prompt: Prompt) -> Prepared:
        """As the engine does, with the grammar."""
        if self.said is not None:
            prompt = replace(prompt, constraint=f"start: {json.dumps(self.said)}")
        return await super().prepare(prompt)
