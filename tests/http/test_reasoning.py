"""Reasoning over HTTP: items, counts, sealed traces and the echo (contract section 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.config import Settings
from tests.support.bodies import OK, Json, assistant, text_of, turns, user
from tests.support.cases import refused
from tests.support.live import Live, ask, scripted

pytestmark = pytest.mark.anyio

SEALED = ["reasoning.encrypted_content"]
THINKS: Json = {"chunks": ["<think>", "\nHm", ", two.", "\n</think>", "\n\n", "It is ", "4."]}
PRIMED: Json = {
    "prompt_ends_with": "<think>\n",
    "chunks": ["Hm", ", two.", "\n</think>\n\n", "It is ", "4."],
}


def kinds(response: Json) -> list[tuple[str, str]]:
    """Type and status of every item."""
    return [(item["type"], item["status"]) for item in response["output"]]


def trace(response: Json) -> str:
    """The text of the first item, a reasoning item."""
    item = response["output"][0]
    assert item["type"] == "reasoning"
    text: str = item["content"][0]["text"]
    return text


@pytest.mark.parametrize("script", [THINKS, PRIMED], ids=["opened by the model", "by the prompt"])
async def test_a_trace_comes_before_the_message_and_is_counted(script: Json) -> None:
    """R1, R2, R4: nothing of it is text; tokens of the trace are those of both forms."""
    async with scripted(script) as (live, _):
        plain = (await live.create(ask())).json()
        streamed = await live.stream(ask())
        for response in (plain, streamed.response):
            assert kinds(response) == [("reasoning", "completed"), ("message", "completed")]
            assert trace(response) == "Hm, two."
            assert text_of(response) == "It is 4."
            usage = response["usage"]
            assert usage["output_tokens"] == len(script["chunks"])
            reasoning = usage["output_tokens_details"]["reasoning_tokens"]
            assert 2 <= reasoning <= 4
        assert streamed.text == "It is 4."


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ({"chunks": ["<think>", "so"], "finish": "length"}, [("reasoning", "incomplete")]),
        (
            {"chunks": ["on and on"], "prompt_ends_with": "<think>", "finish": "length"},
            [("reasoning", "incomplete")],
        ),
        ({"chunks": ["<think>", "so"]}, [("reasoning", "completed")]),
    ],
    ids=["opened", "primed", "ended by the model"],
)
async def test_a_trace_without_an_end_is_no_message(script: Json, expected: Any) -> None:
    """R3: incomplete where a limit cut it, and never an empty message behind it."""
    async with scripted(script) as (live, _):
        plain = (await live.create(ask())).json()
        streamed = await live.stream(ask())
        assert kinds(plain) == kinds(streamed.response) == expected
        assert streamed.text == ""


async def test_a_trace_that_the_prompt_closed_does_not_come() -> None:
    """R2: thinking that was switched off by the template."""
    script = {"prompt_ends_with": "<think>\n\n</think>\n\n", "chunks": ["4"]}
    async with scripted(script) as (live, _):
        assert kinds((await live.create(ask())).json()) == [("message", "completed")]


@pytest.mark.parametrize(
    ("effort", "more", "expected"),
    [
        ("none", {}, {"enable_thinking": False}),
        ("low", {}, {"enable_thinking": True, "reasoning_effort": "low"}),
        (None, {}, {}),
        (
            "high",
            {"enable_thinking": False},
            {"enable_thinking": False, "reasoning_effort": "high"},
        ),
    ],
)
async def test_the_effort_becomes_template_variables_under_the_lenient_policy(
    effort: str | None, more: Json, expected: Json
) -> None:
    """P6: what the client sets itself wins."""
    settings = Settings(compat="openai")
    async with scripted(OK, settings=settings) as (live, engine):
        body = ask(reasoning={"effort": effort}, chat_template_kwargs=more)
        assert (await live.create(body)).json()["reasoning"]["effort"] == effort
        assert engine.calls[0].prompt.template_variables == expected


async def test_a_sealed_trace_is_in_the_stored_response_too() -> None:
    """R5, O4: the same bytes in the stream, the final object and the store."""
    async with scripted(THINKS, OK) as (live, engine):
        streamed = await live.stream(ask(include=SEALED))
        item = streamed.response["output"][0]
        done = [e["item"] for e in streamed.events if e["type"] == "response.output_item.done"]
        stored = (await live.http.get(f"/v1/responses/{streamed.response['id']}")).json()
        assert item["encrypted_content"]
        assert done[0] == item == stored["output"][0]
        await live.create(ask("Why?", previous_response_id=streamed.response["id"]))
        assert engine.calls[1].prompt.turns[1].reasoning == "Hm, two."


async def test_each_trace_of_an_answer_is_sealed_by_itself() -> None:
    """R5: content may be left out or sent along; it is the sealed text that must fit."""
    script = {"chunks": ["<think>one</think>A<think>two</think>B"]}
    async with scripted(script, OK) as (live, engine):
        output = (await live.create(ask(include=SEALED))).json()["output"]
        blobs = [item["encrypted_content"] for item in output if item["type"] == "reasoning"]
        assert len(set(blobs)) == 2
        bare = [{**item, "content": None} if "summary" in item else item for item in output]
        for history in (output, bare):
            answer = await live.create(ask([user("hi"), *history, user("Why?")]))
            assert answer.status_code == 200, answer.text
        assert engine.calls[1].prompt.turns == engine.calls[2].prompt.turns
        assert [turn.reasoning for turn in engine.calls[1].prompt.turns[1:3]] == ["one", "two"]


async def test_a_changed_blob_is_refused_even_beside_its_text() -> None:
    """R5: nothing is generated."""
    async with scripted(THINKS, OK) as (live, engine):
        output = (await live.create(ask(include=SEALED))).json()["output"]
        blob = output[0]["encrypted_content"]
        output[0]["encrypted_content"] = blob[:-6] + blob[-6:].swapcase()
        answer = await live.create(ask([user("hi"), *output, user("Why?")]))
        refused(answer, "input[1].encrypted_content", code="invalid_encrypted_content")
        assert len(engine.calls) == 1


async def test_the_trace_of_one_client_is_no_other_clients() -> None:
    """R5, S8."""
    async with scripted(THINKS, OK, settings=Settings(api_key=("A", "B"))) as (live, _):
        first, second = ({"Authorization": f"Bearer {key}"} for key in "AB")
        output = (await live.create(ask(include=SEALED), headers=first)).json()["output"]
        body = ask([user("hi"), *output, user("Why?")])
        answer = await live.create(body, headers=second)
        refused(answer, "input[1].encrypted_content", code="invalid_encrypted_content")
        assert (await live.create(body, headers=first)).status_code == 200


async def turn(live: Live, history: list[Json], text: str, **more: Any) -> Json:
    """One more question; the history then has the visible answer only, as many clients send."""
    history.append(user(text))
    response: Json = (await live.create(ask(list(history), **more))).json()
    history.append(assistant(text_of(response)))
    return response


async def test_a_trace_is_echoed_into_the_prompt_only() -> None:
    """R6: what is stored and returned stays as the client sent it."""
    async with scripted(THINKS, OK) as (live, engine):
        history: list[Json] = []
        await turn(live, history, "2+2?")
        second = await turn(live, history, "Why?")
        assert engine.calls[1].prompt.turns[1].reasoning == "Hm, two."
        assert turns(engine)[1] == ("assistant", "It is 4.")
        assert [item["type"] for item in second["output"]] == ["message"]
        page = (await live.http.get(f"/v1/responses/{second['id']}/input_items")).json()
        assert [item["type"] for item in page["data"]] == ["message"] * 3
        assert "Hm" not in str(page)
        # The next turn still finds the first trace.
        await turn(live, history, "Sure?")
        assert [t.reasoning for t in engine.calls[2].prompt.turns] == ["", "Hm, two.", "", "", ""]


async def test_a_streamed_answer_is_remembered_too() -> None:
    """R6."""
    async with scripted(THINKS, OK) as (live, engine):
        streamed = await live.stream(ask("2+2?", store=False))
        await live.create(ask([user("2+2?"), assistant(streamed.text), user("Why?")]))
        assert engine.calls[1].prompt.turns[1].reasoning == "Hm, two."


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        (Settings(reasoning_echo_max_bytes=0), {}),
        (Settings(), {"instructions": "Be brief."}),
        (Settings(), {"chat_template_kwargs": {"x": 1}}),
    ],
    ids=["off", "other instructions", "other variables"],
)
async def test_no_trace_is_echoed_into_another_conversation(
    settings: Settings, changes: Json
) -> None:
    """R6: or where it is switched off."""
    async with scripted(THINKS, OK, settings=settings) as (live, engine):
        history: list[Json] = []
        await turn(live, history, "2+2?")
        await turn(live, history, "Why?", **changes)
        assert not any(t.reasoning for t in engine.calls[1].prompt.turns)


async def test_no_trace_is_echoed_to_another_client() -> None:
    """R6, S8."""
    async with scripted(THINKS, OK, settings=Settings(api_key=("A", "B"))) as (live, engine):
        body = ask([user("2+2?"), assistant("It is 4."), user("Why?")])
        for key, first in (("A", ask("2+2?")), ("B", body), ("A", body)):
            answer = await live.create(first, headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == 200
        assert engine.calls[1].prompt.turns[1].reasoning == ""
        assert engine.calls[2].prompt.turns[1].reasoning == "Hm, two."


async def test_the_key_of_the_server_is_made_where_the_setting_says(tmp_path: Path) -> None:
    """R5: at the first start, and taken at the next."""
    settings = Settings(seal_key_file=tmp_path / "deep" / "key")
    async with scripted(THINKS, settings=settings) as (live, _):
        output = (await live.create(ask(include=SEALED))).json()["output"]
    other = Settings(seal_key_file=tmp_path / "other")
    body = ask([user("hi"), *output, user("Why?")])
    async with scripted(OK, settings=settings) as (live, _):
        assert (await live.create(body)).status_code == 200
    async with scripted(OK, settings=other) as (live, _):
        answer = await live.create(body)
        refused(answer, "input[1].encrypted_content", code="invalid_encrypted_content")
