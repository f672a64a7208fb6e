"""Settings: precedence, names, allowed values, and errors of one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.config import OPTIONS, ConfigError, Given, Settings, load, resolve

SEED_VARIABLES = {
    "responses_store_max_entries": "LLAMA_ARG_RESPONSES_STORE_MAX_ENTRIES",
    "responses_store_max_bytes": "MLXCEL_RESPONSES_STORE_MAX_BYTES",
    "responses_store_ttl_secs": "LLAMA_ARG_RESPONSES_STORE_TTL_SECS",
}


def test_without_flags_and_environment_every_value_is_the_default() -> None:
    settings, origins = load({}, {"PATH": "/bin"})
    assert settings == Settings()
    assert set(origins.values()) == {"default"}
    assert list(origins) == list(OPTIONS)


def test_the_defaults_are_those_of_the_contract() -> None:
    """S1, G5, C24, O12: store bounds, loopback, body limit and keep-alive period."""
    settings = Settings()
    assert settings.responses_store_max_entries == 1024
    assert settings.responses_store_max_bytes == 268435456
    assert settings.responses_store_ttl_secs == 3600
    assert settings.host == "127.0.0.1"
    assert settings.max_body_bytes == 64 * 1024 * 1024
    assert settings.keep_alive_secs == 15
    assert settings.compat == "strict"


def test_a_flag_wins_over_the_environment_which_wins_over_the_default() -> None:
    """G1: flags, then environment, then defaults, each with its origin."""
    settings, origins = load({"port": "1"}, {"ANTIPHON_PORT": "2", "ANTIPHON_SLOTS": "3"})
    assert (settings.port, origins["port"]) == (1, "--port")
    assert (settings.slots, origins["slots"]) == (3, "ANTIPHON_SLOTS")
    assert (settings.threads, origins["threads"]) == (0, "default")


def test_a_further_source_fits_in_at_its_place() -> None:
    """G1: sources are a list, so that a file can come between environment and defaults."""
    file = {"port": Given("antiphon.toml", 9), "alias": Given("antiphon.toml", ["a", "b"])}
    settings, origins = resolve([{"port": Given("--port", "8")}, file])
    assert (settings.port, settings.alias) == (8, ("a", "b"))
    assert origins["alias"] == "antiphon.toml"


@pytest.mark.parametrize(("name", "variable"), SEED_VARIABLES.items())
def test_a_store_bound_is_read_under_its_second_name_too(name: str, variable: str) -> None:
    """S1: ANTIPHON_<FLAG> first, then the other name."""
    own = f"ANTIPHON_{name.upper()}"
    settings, origins = load({}, {variable: "7"})
    assert (getattr(settings, name), origins[name]) == (7, variable)
    settings, origins = load({}, {variable: "7", own: "8"})
    assert (getattr(settings, name), origins[name]) == (8, own)


@pytest.mark.parametrize("entry", OPTIONS.values(), ids=lambda entry: entry.name)
def test_every_option_has_a_flag_and_a_variable_of_its_name(entry: Any) -> None:
    """S1: `--a-b` and ANTIPHON_A_B."""
    assert entry.flag == "--" + entry.name.replace("_", "-")
    assert entry.variables[0] == "ANTIPHON_" + entry.name.upper()
    assert entry.help
    assert not entry.help.endswith(".")


def test_no_two_options_share_a_flag_or_a_variable() -> None:
    names = [
        name
        for entry in OPTIONS.values()
        for name in (entry.flag, entry.short, entry.negative, *entry.variables)
        if name
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", " 0 ", 0),
        ("port", "65535", 65535),
        ("alias", "a, b,,c\n", ("a", "b", "c")),
        ("script", "~/answers.json", Path.home() / "answers.json"),
        ("no_auth", "Yes", True),
        ("any_model", "0", False),
        ("log_level", "INFO", "info"),
        ("api_prefix", "/v/ai", "/v/ai"),
        ("api_key", "one\nnight:two,three", ("one", "night:two", "three")),
        ("keep_alive", "event", "event"),
    ],
)
def test_a_text_becomes_a_value_of_its_type(name: str, text: str, value: object) -> None:
    settings, _ = load({}, {f"ANTIPHON_{name.upper()}": text})
    assert getattr(settings, name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", "-1"),
        ("port", "65536"),
        ("port", "8e3"),
        ("port", "٣"),
        ("port", "8_080"),
        ("slots", "0"),
        ("responses_store_ttl_secs", "-1"),
        ("responses_store_ttl_secs", "1.5"),
        ("no_auth", "maybe"),
        ("compat", "loose"),
        ("api_prefix", "ai"),
        ("api_prefix", "/ai/"),
        ("host", "http://127.0.0.1"),
    ],
)
def test_a_value_that_is_not_allowed_is_one_line_with_its_variable(name: str, text: str) -> None:
    variable = f"ANTIPHON_{name.upper()}"
    with pytest.raises(ConfigError) as caught:
        load({}, {variable: text})
    message = str(caught.value)
    assert message.startswith(f"{variable} must be ")
    assert message.endswith(f", not {text!r}")
    assert "\n" not in message


def test_an_error_names_the_flag_and_what_is_allowed() -> None:
    with pytest.raises(ConfigError, match=r"^--compat must be one of strict, openai, not 'both'$"):
        load({"compat": "both"}, {})


def test_a_long_value_with_line_breaks_is_cut_in_the_error() -> None:
    with pytest.raises(ConfigError) as caught:
        load({"port": "x\n" * 500}, {})
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["host", "model", "script", "port"])
def test_an_empty_flag_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^--{name} must be "):
        load({name: ""}, {})


def test_an_empty_variable_counts_as_absent() -> None:
    settings, origins = load({}, {"ANTIPHON_PORT": "", "ANTIPHON_MODEL": ""})
    assert settings == Settings()
    assert origins["port"] == "default"


@pytest.mark.parametrize("text", ["", " ", ",\n,"])
def test_a_key_list_that_is_set_but_empty_fails(text: str) -> None:
    """G5: it must not mean that no key is needed."""
    with pytest.raises(ConfigError, match=r"^ANTIPHON_API_KEY must be .* not empty$"):
        load({}, {"ANTIPHON_API_KEY": text})
    with pytest.raises(ConfigError, match=r"^--api-key must be "):
        load({"api_key": (text,)}, {})


def test_a_key_is_in_no_representation_of_the_settings() -> None:
    settings, _ = load({"api_key": ("night:sesame",)}, {})
    assert settings.api_key == ("night:sesame",)
    assert "sesame" not in repr(settings)


def test_a_switch_that_overrides_a_preset_has_three_states() -> None:
    """P8: on, off, or what the preset says."""
    assert load({}, {})[0].any_model is None
    assert load({"any_model": True}, {})[0].any_model is True
    settings, origins = load({"any_model": False}, {"ANTIPHON_ANY_MODEL": "on"})
    assert (settings.any_model, origins["any_model"]) == (False, "--no-any-model")


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Settings().port = 1  # type: ignore[misc]
