"""Grammars of demanded answers, judged by the library that engines enforce them with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from llguidance import LLMatcher, LLTokenizer

from antiphon.engine.errors import ConstraintRejected
from antiphon.engine.types import JsonOutput, Prompt, ToolChoice, ToolSpec, Turn
from antiphon.text import grammar
from antiphon.text.grammar import FORMS, HERMES, Form, Thought
from antiphon.text.recursion import bottomless

TOKENS = LLTokenizer("byte")
CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = ToolSpec("get_weather", parameters=CITY)
STRICT = ToolSpec("get_weather", parameters=CITY, strict=True)
PING = ToolSpec("ping")
NEEDS_ITSELF: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1}},
    "required": ["n"],
}
ROME, EMPTY = '{"city": "Rome"}', "{}"
BEGUN, POSSIBLE = Thought("<think>", "</think>", True), Thought("<think>", "</think>", False)


def asked(
    *tools: ToolSpec,
    mode: Any = "required",
    names: tuple[str, ...] | None = None,
    most: int | None = None,
    **more: Any,
) -> Prompt:
    choice = ToolChoice(mode, names, most)
    return Prompt("m", (Turn("user", "x"),), tools=tools, choice=choice, **more)


def built(prompt: Prompt, form: Form | None = HERMES, thought: Thought | None = None) -> str:
    made = grammar.build(prompt, form, thought)
    assert made is not None
    return made


def fits(made: str, text: str) -> bool:
    """Whether the text is allowed, and may end where it does."""
    matcher = LLMatcher(TOKENS, made)
    tokens = TOKENS.tokenize_str(text)
    taken = matcher.try_consume_tokens(tokens)
    return taken == len(tokens) and bool(matcher.is_accepting())


def begins(made: str, text: str) -> bool:
    """Whether the text is allowed as the beginning of an answer."""
    matcher = LLMatcher(TOKENS, made)
    tokens = TOKENS.tokenize_str(text)
    return bool(matcher.try_consume_tokens(tokens) == len(tokens))


def hermes(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


WRITTEN: Mapping[str, Callable[[str, str], str]] = {
    "hermes": hermes,
    "qwen_coder": hermes,
    "mistral": lambda name, arguments: f"[TOOL_CALLS]{name}[ARGS]{arguments}",
    "llama3": lambda name, arguments: f'{{"name": "{name}", "parameters": {arguments}}}',
}


class TestForcedCalls:
    @pytest.mark.parametrize("name", FORMS)
    def test_every_form_allows_calls_and_nothing_else(self, name: str) -> None:
        """T3: required, with arguments of the schema."""
        form, write = FORMS[name], WRITTEN[name]
        made = built(asked(WEATHER, PING), form)
        rome, ping = write("get_weather", ROME), write("ping", EMPTY)
        assert fits(made, rome)
        assert fits(made, ping)
        assert fits(made, rome + form.between + ping + form.between + rome)
        for wrong in (
            "",
            "Rome is fine.",
            " " + rome,
            rome + " ",
            rome[:-1],
            write("get_time", EMPTY),
            write("get_weather", EMPTY),
            write("get_weather", '{"city": 1}'),
            write("get_weather", '{"city": "Rome", "x": 1}'),
            write("get_weather", '{"city":\n"Rome"}'),
            write("ping", '{"x": 1}'),
            write("ping", "[]"),
        ):
            assert not fits(made, wrong), wrong

    @pytest.mark.parametrize("name", FORMS)
    @pytest.mark.parametrize("most", [1, 2])
    def test_there_are_not_more_calls_than_allowed(self, name: str, most: int) -> None:
        """T4: parallel_tool_calls and max_tool_calls."""
        form = FORMS[name]
        made = built(asked(PING, most=most), form)
        ping = WRITTEN[name]("ping", EMPTY)
        assert fits(made, form.between.join([ping] * most))
        assert not begins(made, form.between.join([ping] * (most + 1)))

    def test_only_the_named_functions_can_be_called(self) -> None:
        """T3: a named function, allowed_tools."""
        made = built(asked(WEATHER, PING, ToolSpec("other"), names=("ping", "other")))
        assert fits(made, hermes("ping", EMPTY))
        assert fits(made, hermes("other", EMPTY))
        assert not begins(made, '<tool_call>\n{"name": "get')

    def test_a_function_with_a_schema_of_its_own_shape_still_gets_an_object(self) -> None:
        """T2: arguments are an object, `{}` for none."""
        made = built(asked(ToolSpec("f", parameters={"properties": {"a": {"type": "integer"}}})))
        assert fits(made, hermes("f", '{"a": 1}'))
        assert not fits(made, hermes("f", "1"))

    def test_a_recursive_schema_with_a_base_case_is_enforced(self) -> None:
        """T7: `$ref`, `$defs`, recursion."""
        node = {
            "type": "object",
            "properties": {
                "v": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["v", "next"],
            "additionalProperties": False,
        }
        made = built(asked(ToolSpec("f", parameters={"$defs": {"node": node}, **node})))
        assert fits(made, hermes("f", '{"v": 1, "next": {"v": 2, "next": null}}'))
        assert not fits(made, hermes("f", '{"v": 1, "next": {"v": 2}}'))
        root = ToolSpec("f", parameters={"$ref": "#/$defs/node", "$defs": {"node": node}})
        assert fits(built(asked(root)), hermes("f", '{"v": 1, "next": null}'))


class TestFreeText:
    def test_without_a_demand_there_is_no_grammar(self) -> None:
        """T3: auto."""
        assert grammar.build(asked(WEATHER, PING, mode="auto"), HERMES, BEGUN) is None
        assert grammar.build(asked(mode="auto"), None, None) is None
        assert grammar.build(asked(STRICT, mode="none"), HERMES, None) is None

    @pytest.mark.parametrize("name", ["hermes", "mistral"])
    def test_a_strict_function_binds_where_it_is_called(self, name: str) -> None:
        """T1: strict, in text that may say anything else."""
        form, write = FORMS[name], WRITTEN[name]
        made = built(asked(STRICT, PING, mode="auto"), form)
        rome = write("get_weather", ROME)
        for right in (
            "",
            "Just text.",
            rome,
            f"Let me see.\n{rome}",
            f"{rome}\n{rome} and text",
            write("ping", '{"x": [1, 2]}'),
            f"It begins with {form.marker[:-1]} and is text",
        ):
            assert fits(made, right), right
        for wrong in (
            write("get_weather", EMPTY),
            f"Let me see. {write('get_weather', '{1}')}",
            write("get_time", EMPTY),
            f"{form.marker}text",
        ):
            assert not begins(made, wrong), wrong

    def test_an_unbound_function_beside_a_strict_one_need_not_be_expressible(self) -> None:
        """T7: only what a client wants enforced is refused."""
        odd = ToolSpec("odd", parameters={"type": "object", "not": {}})
        made = built(asked(STRICT, odd, mode="auto"))
        assert fits(made, hermes("odd", '{"x": 1}'))
        with pytest.raises(ConstraintRejected) as caught:
            grammar.build(asked(STRICT, odd), HERMES, None)
        assert caught.value.tool == 1


class TestDocuments:
    def test_the_answer_is_one_document_of_the_schema(self) -> None:
        """C5: json_schema, with fixed white space and nothing behind it."""
        made = built(asked(mode="auto", output=JsonOutput(CITY)))
        assert fits(made, ROME)
        for wrong in ("", EMPTY, ROME + " ", "\n" + ROME, ROME + ROME, '{"city":"Rome"}', "[]"):
            assert not fits(made, wrong), wrong

    def test_any_object_will_do_where_no_schema_is_given(self) -> None:
        """C5: json_object."""
        made = built(asked(mode="auto", output=JsonOutput()))
        assert fits(made, '{"a": [1, {"b": null}], "c": "d"}')
        for wrong in ("[]", "1", '"a"', "text"):
            assert not fits(made, wrong), wrong

    def test_with_tools_it_is_a_document_or_calls(self) -> None:
        """C5, T3: auto."""
        made = built(asked(WEATHER, mode="auto", output=JsonOutput(CITY)))
        assert fits(made, ROME)
        assert fits(made, hermes("get_weather", ROME))
        assert not begins(made, ROME + "\n" + hermes("get_weather", ROME))
        assert not begins(made, hermes("get_weather", ROME) + ROME)
        assert not begins(made, "text")

    def test_where_nothing_can_be_called_it_is_a_document(self) -> None:
        """T3: none; a dialect that is not written here is not allowed either."""
        without = built(asked(WEATHER, mode="none", output=JsonOutput(CITY)))
        assert fits(without, ROME)
        assert not begins(without, "<tool_call>")
        assert not begins(built(asked(WEATHER, output=JsonOutput(CITY), mode="auto"), None), "<t")

    def test_values_and_keys_keep_their_characters(self) -> None:
        """T7: non-ASCII enums, raw and not escaped."""
        schema = {
            "type": "object",
            "properties": {"状态": {"enum": ["在线", "離線", 'é"x', "😀"]}},
            "required": ["状态"],
            "additionalProperties": False,
        }
        made = built(asked(mode="auto", output=JsonOutput(schema)))
        for value in ("在线", "離線", 'é"x', "😀"):
            assert fits(made, json.dumps({"状态": value}, ensure_ascii=False))
        assert not begins(made, '{"\\u72b6')
        assert not fits(made, '{"状态": "x"}')


class TestThinking:
    @pytest.mark.parametrize("output", [None, JsonOutput(CITY)], ids=["calls", "document"])
    def test_a_trace_may_come_first(self, output: JsonOutput | None) -> None:
        """R1: free in itself, and what is demanded behind it."""
        mode = "required" if output is None else "auto"
        made = built(asked(WEATHER, mode=mode, output=output), HERMES, POSSIBLE)
        answer = hermes("get_weather", ROME) if output is None else ROME
        assert fits(made, answer)
        assert fits(made, f"<think>\nRome? {{}} <tool_call>\n</think>\n\n{answer}")
        for wrong in (
            f"<think>never closed {answer}",
            f"no marker</think>{answer}",
            f"<think>a</think>\n\n\n\n\n{answer}",
            f"<think>a</think>text{answer}",
            f"{answer}<think>a</think>",
        ):
            assert not fits(made, wrong), wrong

    def test_a_trace_that_the_prompt_opened_must_be_closed(self) -> None:
        """R2: there is no answer without its end."""
        made = built(asked(mode="auto", output=JsonOutput(CITY)), None, BEGUN)
        assert fits(made, f"Rome it is.</think>\n\n{ROME}")
        assert fits(made, f"</think>{ROME}")
        assert not fits(made, ROME)


class TestRecursion:
    @pytest.mark.parametrize(
        "base",
        [
            {"required": []},
            {"type": ["object", "null"]},
            {"properties": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}},
            {"properties": {"n": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}},
            {"properties": {"n": {"$ref": "#/$defs/a~1b"}}},
        ],
    )
    def test_any_way_out_is_enough(self, base: dict[str, Any]) -> None:
        """T7: recursion with a base case."""
        node = {**NEEDS_ITSELF, **base}
        schema = {"$ref": "#/$defs/n", "$defs": {"n": node, "a/b": {"type": "integer"}}}
        assert not bottomless(schema)
        assert built(asked(mode="auto", output=JsonOutput(schema)))

    def test_a_choice_of_one_is_a_way_out_too(self) -> None:
        """T7: even where the compiler itself does not take it."""
        schema = {"oneOf": [{"type": "array", "items": {"$ref": "#"}, "minItems": 1}, {"const": 0}]}
        assert not bottomless(schema)

    @pytest.mark.parametrize(
        "schema",
        [
            {"anyOf": [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}]},
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            },
            {"type": "array", "prefixItems": [{"$ref": "#"}], "minItems": 1},
            {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["b", "a"]},
        ],
    )
    def test_none_is_too_little(self, schema: dict[str, Any]) -> None:
        """T7: a model would go on until its limit."""
        assert bottomless(schema)

    def test_many_references_to_each_other_are_no_burden(self) -> None:
        """T7: the check does not walk every path through them."""
        names = [f"n{n}" for n in range(60)]
        every = [{"$ref": f"#/$defs/{name}"} for name in names]
        assert bottomless({"anyOf": every, "$defs": {name: {"allOf": every} for name in names}})


class TestRefusals:
    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            ({"type": "array", "uniqueItems": True}, "uniqueItems"),
            ({"type": "string", "pattern": "(?<=a)b"}, "look-around"),
            ({"$ref": "#/$defs/gone"}, "/$defs/gone"),
            ({"$ref": "#"}, "needs itself"),
            ({"$defs": {"n": NEEDS_ITSELF}, "$ref": "#/$defs/n"}, "needs itself"),
            ({"type": "thing"}, "thing"),
        ],
    )
    def test_what_cannot_be_enforced_is_refused_with_its_reason(
        self, schema: Mapping[str, Any], reason: str
    ) -> None:
        """T7: in one line, without our own grammar in it."""
        for prompt, tool in (
            (asked(mode="auto", output=JsonOutput(schema)), None),
            (asked(PING, ToolSpec("f", parameters=schema)), 1),
        ):
            with pytest.raises(ConstraintRejected) as caught:
                grammar.build(prompt, HERMES, None)
            message = str(caught.value)
            assert caught.value.tool == tool
            assert reason in message
            assert "\n" not in message
            assert "llguidance" not in message

    @pytest.mark.parametrize("tool", [None, 0])
    def test_a_schema_has_bounds(self, tool: int | None) -> None:
        """T7: 64 KiB, 32 levels, 64 references."""
        deep: dict[str, Any] = {"type": "string"}
        for _ in range(16):
            deep = {"type": "array", "items": deep}
        large = {"type": "string", "enum": ["x" * 65_536]}
        references = {f"p{n}": {"$ref": "#/$defs/d"} for n in range(65)}
        for schema, reason in (
            (large, "65536 bytes"),
            ({"type": "object", "properties": {"a": deep, "b": _nested(33)}}, "32 levels"),
            ({"$defs": {"d": {}}, "properties": references}, "64 references"),
        ):
            prompt = (
                asked(mode="auto", output=JsonOutput(schema))
                if tool is None
                else asked(ToolSpec("f", parameters=schema))
            )
            with pytest.raises(ConstraintRejected, match=reason) as caught:
                grammar.build(prompt, HERMES, None)
            assert caught.value.tool == tool

    def test_what_is_just_within_the_bounds_is_taken(self) -> None:
        """T7."""
        references = {f"p{n}": {"$ref": "#/$defs/d"} for n in range(64)}
        schema = {"$defs": {"d": {"type": "null"}}, "properties": references}
        assert built(asked(mode="auto", output=JsonOutput(schema)))
        assert built(asked(mode="auto", output=JsonOutput(_nested(30))))


def _nested(levels: int) -> dict[str, Any]:
    """A schema of so many levels."""
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"items": schema}
    return schema


def test_a_literal_grammar_wins_over_every_demand() -> None:
    prompt = asked(WEATHER, output=JsonOutput(CITY), constraint='start: "x"')
    assert grammar.build(prompt, HERMES, None) == 'start: "x"'
