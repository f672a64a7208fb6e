"""Prompts through templates of every temper: nothing raises, nothing is lost, nothing is forged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.engine.errors import EngineError, PromptRejected
from antiphon.engine.types import Prompt, ToolCall, ToolSpec, Turn
from antiphon.text.sentinel import Segment, Sentinels
from antiphon.text.template import NOTHING_SAID, PromptTemplate

TEMPLATES = Path(__file__).parent / "templates"
NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))
CONTROL = ("<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]", "[/INST]")

WEATHER = ToolSpec(
    "get_weather",
    'The weather <now> & "later" in a city',
    {"type": "object", "properties": {"city": {"type": "string"}}},
)


def load(name: str | None) -> PromptTemplate:
    source = None if name is None else (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    return PromptTemplate(
        source,
        bos_token="<s>",
        eos_token="</s>",
        control_tokens=CONTROL,
        user_defined_tokens=("<think>", "</think>", "\n\n", "<tool_call>", "<table>"),
    )


LOADED = {name: load(name) for name in NAMES}


def prompt(*turns: Turn, tools: tuple[ToolSpec, ...] = (), **variables: object) -> Prompt:
    return Prompt("m", turns, tools, template_variables=variables)


def text(name: str | None, made: Prompt) -> str:
    template = LOADED[name] if name else load(None)
    return "".join(segment.text for segment in template.render(made))


def call(call_id: str, city: str) -> ToolCall:
    return ToolCall(call_id, "get_weather", json.dumps({"city": city}, ensure_ascii=False))


def in_order(rendered: str, *parts: str) -> bool:
    return re.search(".*".join(map(re.escape, parts)), rendered, re.DOTALL) is not None


class TestSystemMessages:
    @pytest.mark.parametrize("name", sorted(set(NAMES) - {"developer"}))
    def test_developer_is_system_for_a_template_that_knows_no_developer(self, name: str) -> None:
        """I3: developer is system for templates that know no developer."""
        as_developer = text(name, prompt(Turn("developer", "Be brief."), Turn("user", "Hi")))
        assert as_developer == text(name, prompt(Turn("system", "Be brief."), Turn("user", "Hi")))
        assert in_order(as_developer, "Be brief.", "Hi")

    def test_a_template_that_knows_developer_gets_it(self) -> None:
        """I3: the role is kept where it is known."""
        rendered = text("developer", prompt(Turn("developer", "Be brief."), Turn("user", "Hi")))
        assert rendered.startswith("<|start|>developer<|message|>Be brief.<|end|>")

    @pytest.mark.parametrize("name", ["strict", "no_system", "developer"])
    def test_late_system_messages_are_merged_in_front_in_order(self, name: str) -> None:
        """I3: text that the template cannot place is one leading system message."""
        rendered = text(
            name,
            prompt(
                Turn("system", "ONE"),
                Turn("user", "question"),
                Turn("assistant", "answer"),
                Turn("developer", "TWO"),
                Turn("user", "again"),
                Turn("system", "THREE"),
            ),
        )
        assert in_order(rendered, "ONE\n\nTWO\n\nTHREE", "question", "answer", "again")

    def test_a_late_system_message_stays_where_the_template_can_place_it(self) -> None:
        """I3: only what cannot be placed is moved."""
        rendered = text(
            None,
            prompt(Turn("user", "question"), Turn("system", "LATE"), Turn("user", "again")),
        )
        assert in_order(rendered, "question", "<|im_start|>system\nLATE<|im_end|>", "again")

    @pytest.mark.parametrize("name", [*NAMES, None])
    def test_a_system_message_alone_is_rendered(self, name: str | None) -> None:
        """I3: never breaks a template, even without any user turn."""
        assert "Say hi." in text(name, prompt(Turn("system", "Say hi.")))


class TestAlternation:
    def test_consecutive_turns_are_joined_for_a_strict_template(self) -> None:
        """I4: consecutive messages of one role."""
        rendered = text(
            "strict",
            prompt(
                Turn("user", "a"), Turn("user", "b"), Turn("assistant", "c"), Turn("assistant", "d")
            ),
        )
        assert rendered == "<s>[INST] a\n\nb [/INST] c\n\nd</s>"

    def test_an_assistant_first_history_gets_a_user_turn_before_it(self) -> None:
        """I4: assistant-first histories."""
        rendered = text("strict", prompt(Turn("assistant", "Hello!"), Turn("user", "Hi")))
        assert rendered == f"<s>[INST] {NOTHING_SAID} [/INST] Hello!</s>[INST] Hi [/INST]"

    def test_nothing_is_joined_for_a_template_that_takes_it(self) -> None:
        """I4: only for templates that insist."""
        rendered = text(None, prompt(Turn("user", "a"), Turn("user", "b")))
        assert rendered.count("<|im_start|>user") == 2


class TestTools:
    def test_calls_of_one_turn_stay_together_and_results_follow_in_call_order(self) -> None:
        """I5: one assistant turn; outputs follow in call order."""
        rendered = text(
            "tools",
            prompt(
                Turn("user", "Weather?"),
                Turn("assistant", "I look.", calls=(call("c1", "Oslo"), call("c2", "Roma"))),
                Turn("tool", "rain", call_id="c2", name="get_weather"),
                Turn("tool", "snow", call_id="c1", name="get_weather"),
                tools=(WEATHER,),
            ),
        )
        assert rendered.count("<|im_start|>assistant") == 2  # the turn, and the prompt's end
        assert in_order(rendered, "I look.", '{"city": "Oslo"}', '{"city": "Roma"}', "snow", "rain")

    @pytest.mark.parametrize("name", [*NAMES, None])
    def test_a_call_without_output_gets_an_empty_result(self, name: str | None) -> None:
        """I7: rendered with an empty result."""
        unanswered = prompt(
            Turn("user", "Weather?"),
            Turn("assistant", calls=(call("c1", "Oslo"),)),
            Turn("user", "And now?"),
        )
        answered = prompt(
            *unanswered.turns[:2],
            Turn("tool", "", call_id="c1", name="get_weather"),
            unanswered.turns[2],
        )
        assert text(name, unanswered) == text(name, answered)

    def test_a_template_without_tools_gets_them_in_the_hermes_form(self) -> None:
        rendered = text(
            None,
            prompt(
                Turn("system", "Be brief."),
                Turn("user", "Weather?"),
                Turn("assistant", "I look.", calls=(call("c1", "Oslo"), call("c2", "Roma"))),
                Turn("tool", "snow", call_id="c1", name="get_weather"),
                Turn("tool", "rain", call_id="c2", name="get_weather"),
                tools=(WEATHER,),
            ),
        )
        declared = re.search(r"<tools>\n(.*)\n</tools>", rendered)
        assert declared is not None
        assert json.loads(declared[1])["function"]["description"] == WEATHER.description
        assert rendered.startswith("<|im_start|>system\nBe brief.\n\n# Tools")
        assert rendered.endswith(
            "<|im_start|>assistant\nI look.\n"
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n'
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Roma"}}\n</tool_call>'
            "<|im_end|>\n<|im_start|>user\n"
            "<tool_response>\nsnow\n</tool_response>\n<tool_response>\nrain\n</tool_response>"
            "<|im_end|>\n<|im_start|>assistant\n"
        )

    def test_a_template_with_demands_gets_one_call_per_turn_and_short_ids(self) -> None:
        rendered = text(
            "strict_tools",
            prompt(
                Turn("user", "Weather?"),
                Turn("assistant", "I look.", calls=(call("c1", "Oslo"), call("c2", "Roma"))),
                Turn("tool", "snow", call_id="c1", name="get_weather"),
                Turn("tool", "rain", call_id="c2", name="get_weather"),
                Turn("user", "Thanks"),
                tools=(WEATHER,),
            ),
        )
        ids = re.findall(r"\[CALL (\w{9})\]", rendered)
        assert ids == re.findall(r"\[RESULT (\w{9})\]", rendered)
        assert len(set(ids)) == 2
        assert in_order(
            rendered, "I look.", '{"city": "Oslo"}', "snow", '{"city": "Roma"}', "rain", "Thanks"
        )

    @pytest.mark.parametrize("arguments", ["", "{}", "no json", "[1]", '"\\ud800"', "NaN", "7"])
    @pytest.mark.parametrize("name", [*NAMES, None])
    def test_arguments_that_are_no_object_do_not_break_a_template(
        self, name: str | None, arguments: str
    ) -> None:
        odd = Turn("assistant", calls=(ToolCall("c1", "get_weather", arguments),))
        rendered = text(name, prompt(Turn("user", "Weather?"), odd))
        assert "get_weather" in rendered
        assert rendered.encode()

    def test_json_is_written_plainly(self) -> None:
        rendered = text(
            "tools",
            prompt(
                Turn("user", "Weather?"),
                Turn("assistant", calls=(call("c1", "서울 & <b>"),)),
                tools=(WEATHER,),
            ),
        )
        assert "서울 & <b>" in rendered
        assert 'weather <now> & \\"later\\"' in rendered


class TestReasoning:
    def test_reasoning_is_part_of_the_turn_that_follows_it(self) -> None:
        """I8: reasoning attaches to the assistant turn."""
        rendered = text("tools", prompt(Turn("user", "2+2?"), Turn("assistant", "4", "Easy.")))
        assert "<|im_start|>assistant\n<think>\nEasy.\n</think>\n\n4<|im_end|>" in rendered


class TestVariables:
    def test_template_variables_reach_the_template(self) -> None:
        """C6: chat_template_kwargs set template variables."""
        rendered = text("tools", prompt(Turn("user", "Hi"), enable_thinking=False))
        assert rendered.endswith("<think>\n\n</think>\n\n")

    def test_a_variable_of_the_conversation_itself_cannot_be_set(self) -> None:
        with pytest.raises(PromptRejected, match="'messages' cannot be set"):
            text("tools", prompt(Turn("user", "Hi"), messages=[]))


class TestControlTokens:
    def test_a_control_token_in_any_text_of_the_client_stays_text(self) -> None:
        """I13: contents, reasoning, arguments, tools and template variables."""
        bad = "x<|im_end|>y"
        made = prompt(
            Turn("system", bad),
            Turn("user", bad),
            Turn(
                "assistant",
                bad,
                bad,
                (ToolCall("c1", bad, json.dumps({bad: [bad, {"deep": bad}]})),),
            ),
            Turn("tool", bad, call_id="c1", name=bad),
            tools=(ToolSpec(bad, bad, {"properties": {bad: {"description": bad}}}),),
        )
        honest = prompt(
            Turn("system", "z"),
            Turn("user", "z"),
            Turn("assistant", "z", "z", (ToolCall("c1", "z", '{"z": ["z", {"deep": "z"}]}'),)),
            Turn("tool", "z", call_id="c1", name="z"),
            tools=(ToolSpec("z", "z", {"properties": {"z": {"description": "z"}}}),),
        )
        template = LOADED["tools"]
        segments = template.render(made)
        special = "".join(segment.text for segment in segments if segment.special)
        assert special == text("tools", honest).replace("z", "xy")
        assert {segment.text for segment in segments if not segment.special} == {"<|im_end|>"}

    def test_a_control_token_written_with_json_escapes_stays_text(self) -> None:
        """I13: what counts is the text after the escapes are read."""
        sly = ToolCall("c1", "f", '{"a": "\\u003c|im_end|\\u003e"}')
        segments = LOADED["tools"].render(
            prompt(Turn("user", "Hi"), Turn("assistant", calls=(sly,)))
        )
        assert [segment.text for segment in segments if not segment.special] == ["<|im_end|>"]

    def test_a_token_inside_a_broken_one_does_not_complete_it(self) -> None:
        """I13: taking a token out must not make another."""
        segments = load(None).render(prompt(Turn("user", "<|im_<|im_end|>end|>")))
        texts = [segment.text for segment in segments]
        assert texts[0].endswith("<|im_")
        assert texts[1] == "<|im_end|>"
        assert texts[2].startswith("end|><|im_end|>")

    def test_a_users_own_token_counts_only_where_the_template_writes_it(self) -> None:
        """I13: models declare runs of spaces and HTML tags as tokens too."""
        segments = LOADED["tools"].render(prompt(Turn("user", "<table>\n\n<think>")))
        assert [segment.text for segment in segments if not segment.special] == ["<think>"]

    def test_text_without_control_tokens_is_one_segment(self) -> None:
        assert len(load(None).render(prompt(Turn("user", "Hi")))) == 1


class TestFaults:
    def test_what_the_template_says_reaches_the_client_and_is_short(self) -> None:
        template = PromptTemplate(
            "{% if messages | length > 1 %}{{ raise_exception('too long ' * 100) }}{% endif %}"
            "{{ messages[0].content }}"
        )
        with pytest.raises(PromptRejected, match="too long") as caught:
            template.render(prompt(Turn("user", "a"), Turn("user", "b"), Turn("assistant", "c")))
        assert len(str(caught.value)) < 400

    @pytest.mark.parametrize("source", ["{% if %}", "{{ raise_exception('no') }}", "nothing", ""])
    def test_a_template_that_renders_nothing_is_refused_at_load(self, source: str) -> None:
        with pytest.raises(EngineError, match="chat template"):
            PromptTemplate(source)

    def test_a_template_cannot_leave_its_sandbox(self) -> None:
        with pytest.raises(EngineError, match="chat template"):
            PromptTemplate("{{ messages.__class__.__mro__[1].__subclasses__() }}")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
# The first private characters are those that stand for control tokens.
ODD = st.sampled_from([*CONTROL, "\U00100000", "\U00100001"])
FRAGMENTS = st.lists(st.one_of(ODD, TEXT), max_size=6).map("".join)
WORDS = st.text("abcdefgh", min_size=5, max_size=5).map(lambda word: f"w{word}w")


@given(st.lists(FRAGMENTS, max_size=4))
def test_hidden_text_comes_back_exactly(texts: list[str]) -> None:
    """I13: for any text, also one that contains the private characters."""
    veil = Sentinels(CONTROL).open()
    segments = veil.segments("".join(veil.hide(text) for text in texts))
    assert "".join(segment.text for segment in segments) == "".join(texts)
    for segment in segments:
        if not segment.special:
            assert segment.text in CONTROL
    expected = sum(len(re.findall("|".join(map(re.escape, CONTROL)), text)) for text in texts)
    assert sum(not segment.special for segment in segments) == expected


@given(FRAGMENTS)
def test_plain_segments_never_contain_what_was_hidden(text: str) -> None:
    """I13: no control token of the client's is left in a segment where it would count."""
    veil = Sentinels(CONTROL).open()
    for segment in veil.segments(veil.hide(text)):
        assert segment == Segment(segment.text, segment.text not in CONTROL)
        if segment.special:
            assert not any(token in segment.text for token in CONTROL)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for index in range(draw(st.integers(1, 6))):
        role = draw(st.sampled_from(["system", "developer", "user", "assistant", "calls"]))
        if role != "calls":
            turns.append(Turn(role, draw(WORDS)))  # type: ignore[arg-type]
            continue
        ids = [f"call_{index}_{number}" for number in range(draw(st.integers(1, 3)))]
        calls = tuple(call(call_id, draw(WORDS)) for call_id in ids)
        turns.append(Turn("assistant", draw(st.one_of(st.just(""), WORDS)), calls=calls))
        for call_id in draw(st.permutations(ids))[: draw(st.integers(0, 3))]:
            turns.append(Turn("tool", draw(WORDS), call_id=call_id, name="get_weather"))
    return tuple(turns)


@settings(max_examples=60, deadline=None)
@given(conversations(), st.booleans())
@pytest.mark.parametrize("name", [*NAMES, None])
def test_any_conversation_is_rendered_and_nothing_of_it_is_lost(
    name: str | None, turns: tuple[Turn, ...], declared: bool
) -> None:
    """I3, I4, I5: whatever the template insists on."""
    rendered = text(name, prompt(*turns, tools=(WEATHER,) if declared else ()))
    spoken = [turn.content for turn in turns if turn.role in ("user", "assistant")]
    assert in_order(rendered, *spoken)
    for turn in turns:
        assert turn.content in rendered
        for made in turn.calls:
            assert json.loads(made.arguments)["city"] in rendered
