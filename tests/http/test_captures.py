"""Requests that real clients sent, as they sent them, must all decode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.schema.decode import decode, load
from antiphon.schema.requests import CreateBody
from tests.support.spec import SHARED

FOLDER = SHARED / "captures"


def captured() -> list[Any]:
    """Every recorded body of POST /v1/responses, named by client and number."""
    found = []
    for file in sorted(FOLDER.glob("*/*.json")):
        capture = json.loads(file.read_text("utf-8"))
        if (capture["method"], capture["path"]) == ("POST", "/v1/responses"):
            found.append(pytest.param(file, id=f"{capture['client']}-{file.stem}"))
    return found


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the recorded requests are not beside the project")
@pytest.mark.parametrize("file", captured())
def test_a_recorded_request_decodes(file: Path) -> None:
    """I1, I2, C1-C20: whether it is served is another question."""
    body = json.loads(file.read_text("utf-8"))["body"]
    decoded = decode(CreateBody, load(json.dumps(body).encode()))
    assert decoded.model == body["model"]
    assert decoded.stream == bool(body.get("stream"))
