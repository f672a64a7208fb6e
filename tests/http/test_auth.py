"""API keys: who is let in, and what it costs those who guess.

Odd credentials are with the bug cases of area J, foreign ids with the stored responses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.app import keys_of
from antiphon.config import ConfigError, Settings
from antiphon.http.auth import Failures
from tests.support.bodies import OK
from tests.support.live import ask, error_of, scripted
from tests.support.wire import connected

pytestmark = pytest.mark.anyio

KEYED = Settings(api_key=("KEY_A", "bob:KEY_B"))


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer KEY_A"},
        {"Authorization": "BEARER   KEY_A"},
        {"Authorization": "Bearer KEY_B"},
        {"X-Api-Key": "KEY_A"},
        {"x-api-key": "KEY_B", "Authorization": "Basic Zm9v"},
    ],
)
async def test_a_key_opens_every_route(headers: dict[str, str]) -> None:
    """G5: as a bearer token or as X-Api-Key."""
    async with scripted(OK, settings=KEYED) as (live, _):
        assert (await live.http.get("/v1/models", headers=headers)).status_code == 200
        assert (await live.create(ask(), headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer KEY_C"},
        {"Authorization": "KEY_A"},
        {"Authorization": "Bearer bob:KEY_B"},
        {"X-Api-Key": ""},
        {"X-Api-Key": "KEY_A,KEY_B"},
        {"Authorization": "Bearer KEY_C", "X-Api-Key": "KEY_A"},
    ],
)
async def test_without_a_known_key_every_route_is_401(headers: dict[str, str]) -> None:
    """G5: known and unknown paths alike; a wrong bearer token is not rescued."""
    async with scripted(OK, settings=KEYED) as (live, engine):
        for answer in (
            await live.create(ask(), headers=headers),
            await live.http.get("/v1/models", headers=headers),
            await live.http.get("/v1/responses/resp_0", headers=headers),
            await live.http.get("/nowhere", headers=headers),
        ):
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert error_of(answer)["code"] == "invalid_api_key"
        assert engine.calls == []


async def test_nothing_is_read_of_a_stranger() -> None:
    """G5: the answer is there before the body is."""
    async with scripted(OK, settings=KEYED) as (live, _), connected(live) as wire:
        wire.writer.write(
            b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000000\r\n\r\n{"
        )
        assert (await wire.answer())[0] == 401


async def test_an_address_that_guesses_is_slowed_down() -> None:
    """G5: after ten wrong keys 429 with Retry-After; a right key still works."""
    async with scripted(OK, settings=KEYED) as (live, _):
        wrong = {"Authorization": "Bearer guess"}
        for _ in range(Failures.LIMIT):
            assert (await live.http.get("/v1/models", headers=wrong)).status_code == 401
        answer = await live.http.get("/v1/models", headers=wrong)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= Failures.WINDOW + 1
        error = error_of(answer)
        assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
        right = {"Authorization": "Bearer KEY_A"}
        assert (await live.http.get("/v1/models", headers=right)).status_code == 200
        assert (await live.http.get("/health", headers=wrong)).status_code == 200


async def test_without_keys_nobody_is_asked() -> None:
    """G5: on loopback, whatever is sent."""
    async with scripted(OK) as (live, _):
        headers = {"Authorization": "Bearer anything"}
        assert (await live.create(ask(), headers=headers)).status_code == 200


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment\n"])
def test_a_key_file_without_keys_is_refused_at_start(tmp_path: Path, content: str) -> None:
    """G5: it must not mean that no key is needed."""
    file = tmp_path / "keys"
    file.write_text(content)
    with pytest.raises(ConfigError, match="no key"):
        keys_of(Settings(api_key_file=file))
    with pytest.raises(ConfigError, match="cannot read"):
        keys_of(Settings(api_key_file=tmp_path / "missing"))


async def test_keys_of_a_file_count_beside_those_of_the_flag(tmp_path: Path) -> None:
    """G5: one a line, with a name or without."""
    file = tmp_path / "keys"
    file.write_text("# ours\nfile-key\n\n alice:second-key \n")
    settings = Settings(api_key=("flag-key",), api_key_file=file)
    async with scripted(OK, settings=settings) as (live, _):
        for key in ("flag-key", "file-key", "second-key"):
            headers = {"Authorization": f"Bearer {key}"}
            assert (await live.create(ask(), headers=headers)).status_code == 200


@pytest.mark.parametrize("key", ["two words", "name:", "tab\there"])
def test_a_malformed_key_is_refused_at_start(key: str) -> None:
    """G5: no header could carry it; the message does not show it."""
    with pytest.raises(ConfigError) as caught:
        keys_of(Settings(api_key=(key,)))
    assert key not in str(caught.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com"])
def test_a_reachable_address_needs_a_key(host: str) -> None:
    """G5: or the word that none is wanted."""
    with pytest.raises(ConfigError, match="--no-auth"):
        keys_of(Settings(host=host))
    assert keys_of(Settings(host=host, no_auth=True)) == []
    assert len(keys_of(Settings(host=host, api_key=("KEY",)))) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    """G5."""
    assert keys_of(Settings(host=host)) == []


async def test_a_secret_is_never_shown() -> None:
    """G5: not in settings, errors or models."""
    async with scripted(OK, settings=KEYED) as (live, _):
        wrong: Any = await live.http.get("/v1/models", headers={"X-Api-Key": "my-guess"})
        assert "my-guess" not in wrong.text
        assert "KEY_A" not in repr(KEYED)
