"""The fields of a create request, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.config import Settings
from antiphon.engine.types import Sampling
from antiphon.store.base import Limits
from antiphon.store.memory import MemoryStore
from tests.support.bodies import CALLS_WEATHER, OK, WEATHER, Json, call, output, turns, user
from tests.support.cases import refused
from tests.support.live import Live, ask, scripted
from tests.support.wire import connected

pytestmark = pytest.mark.anyio


async def test_the_model_must_be_known() -> None:
    """C1: 404 model_not_found; missing or not a string 400."""
    async with scripted(OK) as (live, engine):
        unknown = await live.create({"model": "other", "input": "x"})
        assert "scripted" in refused(unknown, "model", status=404, code="model_not_found")
        for body in ({"input": "x"}, {"input": "x", "model": ""}, {"input": "x", "model": 1}):
            refused(await live.create(body), "model")
        assert engine.calls == []


@pytest.mark.parametrize("settings", [Settings(compat="openai"), Settings(any_model=True)])
async def test_any_model_name_may_mean_the_default(settings: Settings) -> None:
    """P8: the name is echoed."""
    async with scripted(OK, settings=settings) as (live, engine):
        answer = await live.create({"model": "gpt-9", "input": "x"})
        assert answer.json()["model"] == "gpt-9"
        assert engine.calls[0].prompt.model == "scripted"


async def test_an_override_beats_the_preset() -> None:
    """P8: each field of the policy can be set alone."""
    settings = Settings(compat="openai", any_model=False)
    async with scripted(OK, settings=settings) as (live, _):
        answer = await live.create({"model": "gpt-9", "input": "x"})
        refused(answer, "model", status=404, code="model_not_found")


async def test_instructions_are_enough_and_lead_the_prompt() -> None:
    """C2, C3: an empty input is fine where instructions ask for something."""
    async with scripted(OK) as (live, engine):
        answer = await live.create({"model": "scripted", "instructions": "Say hi."})
        assert answer.json()["instructions"] == "Say hi."
        assert turns(engine) == [("system", "Say hi.")]
        refused(await live.create(ask(" \n")), "input")


@pytest.mark.parametrize(
    ("text", "param"),
    [
        ({"format": {"type": "grammar"}}, "text.format"),
        ({"format": {"type": "json_schema", "schema": {}}}, "text.format.name"),
        ({"format": "text"}, "text.format"),
        ({"verbosity": "loud"}, "text.verbosity"),
        ("text", "text"),
    ],
)
async def test_a_text_format_that_does_not_exist_is_refused(text: Any, param: str) -> None:
    """C5."""
    async with scripted(OK) as (live, engine):
        refused(await live.create(ask(text=text)), param)
        assert engine.calls == []


async def test_text_and_reasoning_are_echoed_and_change_no_variable() -> None:
    """C5, C6: only chat_template_kwargs sets variables of the template."""
    async with scripted(OK) as (live, engine):
        body = ask(
            text={"format": {"type": "text"}, "verbosity": "low"},
            reasoning={"effort": "high", "summary": "auto"},
        )
        echoed = (await live.create(body)).json()
        assert echoed["text"] == {"format": {"type": "text"}, "verbosity": "low"}
        assert echoed["reasoning"] == {"effort": "high", "summary": "auto"}
        assert engine.calls[0].prompt.template_variables == {}
        await live.create({**body, "chat_template_kwargs": {"enable_thinking": False}})
        assert engine.calls[1].prompt.template_variables == {"enable_thinking": False}


async def test_a_chain_is_restored_to_its_root() -> None:
    """C7: not one hop; the answers of each turn are in it."""
    async with scripted({"chunks": ["a1"]}, {"chunks": ["a2"]}, OK) as (live, engine):
        one = (await live.create(ask("u1"))).json()["id"]
        two = (await live.create(ask("u2", previous_response_id=one))).json()["id"]
        await live.create(ask("u3", previous_response_id=two))
        assert [text for _, text in turns(engine)] == ["u1", "a1", "u2", "a2", "u3"]


class Clock:
    """A time that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


async def chained(live: Live, id: str, **more: Any) -> str:
    """The message of the refusal to continue this id."""
    answer = await live.create(ask("x", previous_response_id=id, **more))
    return refused(answer, "previous_response_id", code="previous_response_not_found")


async def test_unknown_and_expired_ids_get_one_answer() -> None:
    """C7 (S2): the time to live counts from the write."""
    clock = Clock()
    store = MemoryStore(Limits(ttl=60), clock)
    async with scripted(OK, store=store) as (live, _):
        id = (await live.create(ask())).json()["id"]
        clock.now = 59
        assert (await live.http.get(f"/v1/responses/{id}")).status_code == 200
        clock.now = 61
        assert (await live.http.get(f"/v1/responses/{id}")).status_code == 404
        expired = await chained(live, id)
        assert expired.replace(id, "resp_0") == await chained(live, "resp_0")


async def test_an_unfinished_response_cannot_be_continued() -> None:
    """C7: the message tells its status; with store false it is unknown."""
    async with scripted({"wait_for": "gate", **OK}, OK) as (live, engine):
        async with connected(live) as kept, connected(live) as unkept:
            await kept.send(ask(stream=True))
            id = await kept.opened()
            answer = await live.create(ask("x", previous_response_id=id))
            assert refused(answer, "previous_response_id") == (
                f"previous response '{id}' has not finished (status: in_progress)"
            )
            await unkept.send(ask(stream=True, store=False))
            await chained(live, await unkept.opened())
            engine.open_gate("gate")
            await kept.until(b"data: [DONE]\n\n")
        assert (await live.create(ask("x", previous_response_id=id))).status_code == 200


async def test_where_storage_is_off_chains_and_reads_say_so() -> None:
    """C7: 400 that names the setting, on every route that needs the store."""
    settings = Settings(responses_store_max_entries=0)
    async with scripted(OK, settings=settings) as (live, _):
        path = f"/v1/responses/{(await live.create(ask())).json()['id']}"
        for answer in (
            await live.create(ask("x", previous_response_id="resp_1")),
            await live.http.get(path),
            await live.http.delete(path),
            await live.http.post(f"{path}/cancel"),
            await live.http.get(f"{path}/input_items"),
        ):
            assert "--responses-store-max-entries" in refused(answer, None)


async def test_obfuscation_is_off_unless_asked_for() -> None:
    """C11: padding on deltas only, and it changes nothing else."""
    async with scripted({"chunks": ["a", "b"], "reasoning": "r", **CALLS_WEATHER}) as (live, _):
        plain = await live.stream(ask(tools=[WEATHER]))
        assert not any("obfuscation" in event for event in plain.events)
        options = {"include_obfuscation": True}
        padded = await live.stream(ask(tools=[WEATHER], stream_options=options))
        for event in padded.events:
            assert ("obfuscation" in event) is event["type"].endswith(".delta")
        assert padded.text == plain.text


async def test_sampling_reaches_the_engine() -> None:
    """C12, C13: every value as it was given, 0 included."""
    values: Json = {
        "temperature": 0,
        "top_p": 0,
        "top_k": 40,
        "min_p": 0.05,
        "presence_penalty": -2,
        "frequency_penalty": 2,
        "repetition_penalty": 1.1,
        "seed": 7,
    }
    async with scripted(OK) as (live, engine):
        answer = await live.create(ask(**values, stop=["a", "b"], max_output_tokens=9))
        assert answer.status_code == 200, answer.text
        expected = Sampling(**values, stop=("a", "b"), max_tokens=9)
        assert engine.calls[0].prompt.sampling == expected
        assert answer.json()["temperature"] == answer.json()["top_p"] == 0
        await live.create(ask())
        assert engine.calls[1].prompt.sampling == Sampling()
        await live.create(ask(stop="one"))
        assert engine.calls[2].prompt.sampling.stop == ("one",)


COMPACTION = {"type": "compaction", "compact_threshold": 0}


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("presence_penalty", {"presence_penalty": 2.1}),
        ("frequency_penalty", {"frequency_penalty": -2.1}),
        ("top_k", {"top_k": -1}),
        ("min_p", {"min_p": 1.5}),
        ("repetition_penalty", {"repetition_penalty": 0}),
        ("seed", {"seed": 1.5}),
        ("stop", {"stop": ["a", "b", "c", "d", "e"]}),
        ("stop", {"stop": [""]}),
        ("max_output_tokens", {"max_output_tokens": "16"}),
        ("max_tool_calls", {"max_tool_calls": 0}),
        ("store", {"store": "yes"}),
        ("include", {"include": ["everything"]}),
        ("stream_options.include_obfuscation", {"stream_options": {"include_obfuscation": 1}}),
        ("service_tier", {"service_tier": "gold"}),
        ("previous_response_id", {"previous_response_id": ""}),
        ("context_management[0].compact_threshold", {"context_management": [COMPACTION]}),
        ("context_management", {"context_management": [COMPACTION, COMPACTION]}),
    ],
)
async def test_a_value_out_of_range_is_refused(param: str, fields: Json) -> None:
    """C9, C13, C22: 400 that names the field, before anything is generated or stored."""
    async with scripted(OK) as (live, engine):
        refused(await live.create(ask(**fields)), param)
        assert engine.calls == []


async def test_log_probabilities_are_refused_where_the_engine_has_none() -> None:
    """C14: by either field."""
    async with scripted(OK) as (live, _):
        answer = await live.create(ask(top_logprobs=3))
        refused(answer, "top_logprobs", code="unsupported_feature")
        answer = await live.create(ask(include=["message.output_text.logprobs"]))
        refused(answer, "include", code="unsupported_feature")
        assert (await live.create(ask(top_logprobs=0))).status_code == 200


async def test_cache_hints_are_echoed_and_group_requests() -> None:
    """C18: prompt_cache_key, then user, then safety_identifier; the tier is always default."""
    async with scripted(OK) as (live, engine):
        body = ask(prompt_cache_key="k", user="u", safety_identifier="s", service_tier="flex")
        echoed = (await live.create(body)).json()
        for key in ("prompt_cache_key", "user", "safety_identifier"):
            assert echoed[key] == body[key]
            assert engine.calls[-1].prompt.cache_key == body.pop(key)
            await live.create(body)
        assert engine.calls[-1].prompt.cache_key is None
        assert echoed["service_tier"] == "default"


async def test_unknown_fields_are_named_in_a_header_that_cannot_be_broken() -> None:
    """C21: odd names and very many of them."""
    async with scripted(OK) as (live, _):
        answer = await live.create(ask(**{"a\r\nX-Evil: 1": 1, "ключ": 2, "fine": 3, "null": None}))
        named = answer.headers["antiphon-ignored"]
        assert named == "(unprintable), (unprintable), fine"
        assert "x-evil" not in answer.headers
        answer = await live.create(ask(**{f"f{n}": n for n in range(1000)}))
        assert answer.headers["antiphon-ignored"].endswith(", f19, and 980 more")
        assert "antiphon-ignored" not in (await live.create(ask())).headers
        streamed = await live.create(ask(stream=True, other=1))
        assert streamed.headers["antiphon-ignored"] == "other"


@pytest.mark.parametrize(
    ("field", "right"), [("messages", "'input'"), ("response_format", "'text.format'")]
)
async def test_fields_of_chat_completions_get_directions(field: str, right: str) -> None:
    """C21: 400 that names the right field, on input_tokens too."""
    async with scripted(OK) as (live, _):
        body = {"model": "scripted", field: [user("hi")]}
        for path in ("/v1/responses", "/v1/responses/input_tokens"):
            assert right in refused(await live.http.post(path, json=body), field)


LATER = "unsupported_feature"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"background": True}, "background"),
        ({"background": True, "stream": True}, "background"),
        ({"conversation": "mine"}, "conversation"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        (
            {"context_management": [{"type": "compaction", "compact_threshold": 9}]},
            "context_management",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [WEATHER, {"type": "custom", "name": "c"}]}, "tools[1].type"),
        ({"input": [{"type": "compaction", "encrypted_content": "x"}]}, "input[0]"),
        (
            {
                "input": [
                    {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "x"},
                ]
            },
            "input[0].type",
        ),
    ],
)
async def test_a_feature_that_is_not_there_yet_is_a_clear_400(more: Json, param: str) -> None:
    """C4, C8, C9, C16, T2: refused by name, never ignored."""
    async with scripted(OK) as (live, engine):
        answer = await live.create({**ask(), **more})
        refused(answer, param, code=LATER)
        assert engine.calls == []


async def test_two_ways_to_continue_exclude_each_other() -> None:
    """C8."""
    async with scripted(OK) as (live, _):
        body = ask(previous_response_id="resp_1", conversation="mine")
        assert "mutually exclusive" in refused(await live.create(body), "conversation")


async def test_compact_is_a_clear_400() -> None:
    """E6: not there yet."""
    async with scripted(OK) as (live, _):
        refused(await live.http.post("/v1/responses/compact", json=ask()), None, code=LATER)


async def test_a_forced_choice_needs_tools() -> None:
    """T3: required without tools is 400; none hides them from the model."""
    async with scripted(OK) as (live, engine):
        refused(await live.create(ask(tool_choice="required")), "tool_choice")
        history = [user("x"), call("a"), output("a", "y")]
        answer = await live.create(ask(history, tools=[WEATHER], tool_choice="none"))
        assert answer.json()["tools"] == [WEATHER]
        assert answer.json()["tool_choice"] == "none"
        assert engine.calls[0].prompt.tools == ()
