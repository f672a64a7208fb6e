"""Which family a chat template belongs to, and what a user may say instead."""

from __future__ import annotations

import pytest

from antiphon.text.profiles import DIALECTS, FORMATS, detect, override

TOOLS = "{{ tools | tojson }}"
# What tells the families apart in their published templates: name, dialect, trace, excerpt.
TEMPLATES = [
    ("harmony", "harmony", "harmony", "<|start|>assistant<|channel|>analysis<|message|>"),
    ("gemma4", "gemma", "gemma", "<|tool_call>call: <|channel>thought"),
    ("functiongemma", "gemma", None, "<start_of_turn>model <start_function_call>call:"),
    ("gemma3", "gemma", None, "<start_of_turn>user ```tool_code"),
    ("minimax", "minimax", "think", "<minimax:tool_call><invoke name= <think>"),
    ("glm", "glm", "think", "<tool_call>{{ name }}<arg_key> </think>"),
    ("kimi", "kimi", None, "<|tool_calls_section_begin|><|tool_call_begin|>"),
    ("kimi", "kimi", "kimi", "<think></think><|tool_calls_section_begin|><|tool_call_begin|>"),
    ("deepseek", "deepseek", "think", "content.split('</think>') <｜tool▁call▁begin｜>"),
    ("seed_oss", "qwen_coder", "seed_oss", "<seed:tool_call><function=<parameter= <seed:think>"),
    ("command_a", "command_r", "command_a", "<|START_THINKING|><|START_ACTION|>"),
    ("command_r", "command_r", None, "<|START_OF_TURN_TOKEN|> Write 'Action:' followed by"),
    ("functionary_v3_2", "functionary_v3_2", None, "<|start_header_id|>assistant >>>all"),
    ("mistral", "mistral", None, "[AVAILABLE_TOOLS][TOOL_CALLS]"),
    ("mistral", "mistral", "mistral", "[THINK][TOOL_CALLS]{{ name }}[ARGS]"),
    ("lfm2", "pythonic", None, "<|im_start|><|tool_call_start|>[ <|tool_call_end|>"),
    ("olmo3", "pythonic", None, "<functions></functions><function_calls>"),
    ("llama4", "pythonic", None, "<|header_start|>[func_name1(params_name1=params_value1)]"),
    ("qwen_coder", "qwen_coder", None, "<tool_call>\n<function=example>\n<parameter=a>"),
    ("functionary_v3_1", "functionary_v3_1", None, "<|start_header_id|><function=example>"),
    ("granite", "granite", None, "<|start_of_role|><|tool_call|>"),
    ("hermes", "hermes", "think", "<tools></tools><tool_call>{</tool_call><think>"),
    ("llama3", "llama3", None, "<|start_header_id|>ipython<|python_tag|>"),
    ("llama3", "llama3", None, '<|start_header_id|>{"name": …, "parameters": …} tools'),
    ("neutral", "hermes", None, "<start_of_turn>model"),
    ("neutral", "hermes", None, ""),
    ("neutral", "hermes", "think", "<|im_start|>assistant\n<think>\n"),
]


@pytest.mark.parametrize(("name", "dialect", "thinking", "excerpt"), TEMPLATES)
def test_the_family_shows_in_the_template(
    name: str, dialect: str, thinking: str | None, excerpt: str
) -> None:
    """R1: each family's own markers around its trace."""
    profile = detect(TOOLS + excerpt)
    assert profile.name == name
    assert profile.dialect is DIALECTS[dialect]
    assert profile.thinking == (FORMATS[thinking] if thinking else None)


def test_a_model_without_a_template_gets_the_neutral_form() -> None:
    profile = detect(None)
    assert (profile.name, profile.dialect.name, profile.thinking) == ("neutral", "hermes", None)


def test_calls_come_in_the_neutral_form_where_the_template_cannot_show_tools() -> None:
    profile = detect("<｜tool▁call▁begin｜><think>", tools=False)
    assert profile.dialect.name == "hermes"
    assert profile.thinking == FORMATS["think"]


def test_a_user_knows_better() -> None:
    profile = detect("<tool_call><think>")
    assert override(profile, None, None) == profile
    assert override(profile, "auto", "auto") == profile
    changed = override(profile, "kimi", "mistral")
    assert changed.dialect is DIALECTS["kimi"]
    assert changed.thinking == FORMATS["mistral"]
    neither = override(profile, "none", "none")
    assert neither.thinking is None
    assert neither.dialect.openers == ()
    assert neither.dialect.leading == ()


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_can_be_asked_for_by_name(name: str) -> None:
    assert override(detect(None), name, None).dialect.name == name


@pytest.mark.parametrize("name", FORMATS)
def test_every_reasoning_format_can_be_asked_for_by_name(name: str) -> None:
    assert override(detect(None), None, name).thinking == FORMATS[name]


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"tool format 'hermse'.* auto, hermes, .*, none\."):
        override(detect(None), "hermse", None)
    with pytest.raises(ValueError, match=r"reasoning format 'thin'.* auto, think, .*, none\."):
        override(detect(None), None, "thin")


def test_all_markers_of_a_family_are_named_once() -> None:
    """An engine hides special tokens, except for these."""
    profile = detect("<|start|>assistant<|channel|>analysis<|message|>")
    assert len(set(profile.markers)) == len(profile.markers)
    special = {"<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>"}
    assert special <= set(profile.markers)
    assert "<|channel|>analysis<|message|>" in profile.markers
    hermes = detect("<tool_call><think>")
    assert hermes.markers == ("<think>", "</think>", "<tool_call>", "</tool_call>")
