"""The frame of a case: a scripted server that must still answer when the case is over."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from antiphon.config import Settings
from antiphon.engines.scripted import ScriptedEngine
from antiphon.store.base import Store
from tests.support.live import Live, ask, error_of, scripted


@contextlib.asynccontextmanager
async def case(
    *answers: Mapping[str, Any],
    settings: Settings | None = None,
    store: Store | None = None,
    headers: Mapping[str, str] | None = None,
    **script: Any,
) -> AsyncIterator[tuple[Live, ScriptedEngine]]:
    """`scripted`, and after the block a plain request is answered 200 (NOCRASH).

    The script's last answer serves that request; `headers` are sent with it.
    """
    async with scripted(*answers, settings=settings, store=store, **script) as (live, engine):
        yield live, engine
        answer = await live.create(ask("still there?", max_output_tokens=1), headers=headers)
        assert answer.status_code == 200, answer.text


def refused(
    answer: httpx2.Response, param: str | None, *, status: int = 400, code: str | None = None
) -> str:
    """The message of a refusal whose status, type, param and code are checked."""
    error = error_of(answer)
    assert answer.status_code == status, answer.text
    assert error["type"] == "invalid_request_error"
    assert (error["param"], error["code"]) == (param, code)
    message: str = error["message"]
    assert "Traceback" not in message
    assert ".py" not in message
    return message
