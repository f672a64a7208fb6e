"""Settings: the one table of options, and where the value of each comes from.

Decides every name, default and allowed value; the command line, the environment variables and
`docs/configuration.md` are derived from the fields of `Settings`. It must not know what a
setting is used for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from antiphon.options import declared, option

MAX_SHOWN = 60


class ConfigError(Exception):
    """A setting that cannot be used; the message is one line for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that an operator can set. The order of the fields is that of `--help`."""

    model: str | None = option(
        None,
        "Model to serve: the path of a GGUF file",
        group="Model",
        short="-m",
        unset="the packaged model",
    )
    alias: tuple[str, ...] = option(
        (), "Further names of the model, separated by commas", group="Model"
    )
    engine: Literal["llamacpp", "scripted"] = option(
        "llamacpp",
        "What generates: the embedded llama.cpp, or a script of fixed answers for tests",
        group="Model",
    )
    script: Path | None = option(
        None,
        "File with the answers of the scripted engine",
        group="Model",
        unset="it repeats the last user turn",
    )
    tool_format: str | None = option(
        None,
        "How the model writes calls: hermes, mistral, llama3, qwen_coder, …",
        group="Model",
        unset="what its chat template shows",
    )
    reasoning_format: str | None = option(
        None,
        "How the model writes its reasoning: think, none, …",
        group="Model",
        unset="what its chat template shows",
    )
    llama_server: Path | None = option(
        None,
        "A llama-server binary to run instead of the embedded library",
        group="Model",
        unset="the embedded library",
    )

    host: str = option(
        "127.0.0.1",
        "Address to listen on; one that other machines can reach needs an API key",
        group="Network",
        pattern=r"[^\s/]+",
        allowed="a host name or an address",
    )
    port: int = option(
        8080, "Port to listen on; 0 takes a free one", group="Network", minimum=0, maximum=65535
    )
    api_prefix: str = option(
        "",
        "Path under which everything is served, for example /ai",
        group="Network",
        pattern=r"(/[A-Za-z0-9._~-]+)*",
        allowed="empty, or a path that begins with a slash and does not end with one",
    )
    keep_alive_secs: int = option(
        15, "Silence on a stream, in seconds, before a keep-alive", group="Network", minimum=1
    )
    max_body_bytes: int = option(
        64 * 1024 * 1024,
        "Largest request body, as sent and as decoded",
        group="Network",
        minimum=1,
    )
    stream_buffer_bytes: int = option(
        8 * 1024 * 1024,
        "Most bytes held for a slow reader of a stream before it is disconnected",
        group="Network",
        minimum=4096,
    )

    api_key: tuple[str, ...] = option(
        (),
        "API key, as KEY or NAME:KEY; may be given several times",
        group="Access",
        secret=True,
        allowed="a list of KEY or NAME:KEY that is not empty",
    )
    api_key_file: Path | None = option(
        None, "File with one API key per line, in the form of --api-key", group="Access"
    )
    no_auth: bool = option(
        False,
        "Allow listening on a reachable address without any API key",
        group="Access",
    )

    slots: int = option(
        4, "How many generations run at once", group="Engine", minimum=1, maximum=1024
    )
    queue_limit: int = option(
        256,
        "How many requests may wait for a slot before others get 503",
        group="Engine",
        minimum=0,
    )
    ctx_size: int = option(
        0,
        "Context window of each slot, in tokens; 0 chooses one that the model allows",
        group="Engine",
        minimum=0,
    )
    threads: int = option(
        0,
        "Threads of the engine; 0 means one per physical core",
        group="Engine",
        minimum=0,
        maximum=1024,
    )
    batch_size: int = option(
        64,
        "Tokens of a prompt that are processed in one step; a cancel waits for one step, and a "
        "GPU wants more",
        group="Engine",
        minimum=1,
    )
    cache_ram_mib: int = option(
        256,
        "Memory for the prompt states of earlier requests, in MiB; 0 keeps none",
        group="Engine",
        minimum=0,
    )

    responses_store_max_entries: int = option(
        1024,
        "How many responses are kept; 0 switches storage off",
        group="Storage",
        env=("LLAMA_ARG_RESPONSES_STORE_MAX_ENTRIES",),
        minimum=0,
    )
    responses_store_max_bytes: int = option(
        268435456,
        "How many bytes of responses are kept; 0 evicts everything at once",
        group="Storage",
        env=("MLXCEL_RESPONSES_STORE_MAX_BYTES",),
        minimum=0,
    )
    responses_store_ttl_secs: int = option(
        3600,
        "Seconds that a response is kept after it was written; 0 means no expiry",
        group="Storage",
        env=("LLAMA_ARG_RESPONSES_STORE_TTL_SECS",),
        minimum=0,
    )

    reasoning_echo_max_bytes: int = option(
        16 * 1024 * 1024,
        "Bytes of reasoning kept to be put back when an answer returns without it; 0 keeps none",
        group="Storage",
        env=("MLXCEL_REASONING_ECHO_MAX_BYTES",),
        minimum=0,
    )
    seal_key_file: Path | None = option(
        None,
        "File with the key that seals encrypted_content; made at the first start",
        group="Storage",
        unset="seal.key in the state folder of the user",
    )

    compat: Literal["strict", "openai"] = option(
        "strict",
        "What happens to requests that ask for more than this server executes: strict refuses "
        "them, openai serves them as far as it can; the options below override it one by one",
        group="Policy",
    )
    any_model: bool | None = option(
        None,
        "Serve the default model under every name, instead of 404 for unknown names",
        group="Policy",
        unset="as --compat says",
    )
    hosted_tools: Literal["error", "ignore"] | None = option(
        None,
        "What a tool that OpenAI's servers would run does: error is 400, ignore leaves it out",
        group="Policy",
        unset="as --compat says",
    )
    custom_tools: Literal["error", "serve"] | None = option(
        None,
        "What custom, namespace and tool_search tools do: error is 400, serve offers them",
        group="Policy",
        unset="as --compat says",
    )
    map_reasoning_effort: bool | None = option(
        None,
        "Turn reasoning.effort into the template variables enable_thinking and reasoning_effort",
        group="Policy",
        unset="as --compat says",
    )
    truncation: Literal["error", "auto"] | None = option(
        None,
        "What truncation: auto in a request does: error is 400, auto drops the oldest items",
        group="Policy",
        unset="as --compat says",
    )
    keep_alive: Literal["comment", "event"] | None = option(
        None,
        "How a silent stream is kept alive: an SSE comment, or a keepalive event",
        group="Policy",
        unset="as --compat says",
    )

    log_level: Literal["debug", "info", "warning", "error"] = option(
        "info", "Least severe messages that are logged", group="Logging"
    )
    log_format: Literal["text", "json"] = option("text", "Form of a log line", group="Logging")


OPTIONS = declared(Settings)


@dataclass(frozen=True, slots=True)
class Given:
    """A value as somebody gave it; `origin` is the flag, variable or file that holds it."""

    origin: str
    value: object


Source = Mapping[str, Given]


def from_flags(flags: Mapping[str, object]) -> Source:
    """What the command line says: option name to value, None or () where it is silent."""
    source = {}
    for name, value in flags.items():
        if value is not None and value != ():
            entry = OPTIONS[name]
            flag = entry.negative if value is False and entry.negative else entry.flag
            source[name] = Given(flag, value)
    return source


def from_environment(environ: Mapping[str, str]) -> Source:
    """What the environment says. An empty variable is an absent one, except for a secret."""
    source = {}
    for entry in OPTIONS.values():
        for variable in entry.variables:
            value = environ.get(variable)
            if value or (value is not None and entry.secret):
                source[entry.name] = Given(variable, value)
                break
    return source


def resolve(sources: Sequence[Source]) -> tuple[Settings, dict[str, str]]:
    """Take each value from the first source that has it.

    Returns:
        The settings, and per option where its value came from (`default` if nowhere).

    Raises:
        ConfigError: a value is not allowed.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for entry in OPTIONS.values():
        given = next((source[entry.name] for source in sources if entry.name in source), None)
        origins[entry.name] = given.origin if given else "default"
        if given is None:
            continue
        try:
            values[entry.name] = entry.parse(given.value)
        except ValueError:
            shown = "" if entry.secret else f", not {str(given.value)[:MAX_SHOWN]!r}"
            raise ConfigError(f"{given.origin} must be {entry.allowed}{shown}") from None
    return Settings(**values), origins


def load(
    flags: Mapping[str, object], environ: Mapping[str, str]
) -> tuple[Settings, dict[str, str]]:
    """Settings from flags, then environment, then defaults (G1).

    Args:
        flags: option name to value, as for `from_flags`.
        environ: the environment variables.

    Raises:
        ConfigError: a value is not allowed.
    """
    return resolve([from_flags(flags), from_environment(environ)])


def reference() -> str:
    """The page `docs/configuration.md`: every option in Markdown."""
    lines = [
        "# Configuration",
        "",
        "Written by `antiphon config --markdown` from the table in `src/antiphon/config.py`; "
        "do not edit it by hand.",
        "",
        "A value comes from the command line, else from the first environment variable in the "
        "list that is set and not empty, else it is the default. "
        "`antiphon config` takes the same flags as `antiphon serve` and shows each value with "
        "the place where it came from. "
        "Lists are separated by commas or line breaks, and their flags may be repeated.",
    ]
    groups = dict.fromkeys(entry.group for entry in OPTIONS.values())
    for group in groups:
        lines += ["", f"## {group}", "", "| flag | environment | default | allowed | meaning |"]
        lines.append("|---|---|---|---|---|")
        for entry in OPTIONS.values():
            if entry.group == group:
                flags = [entry.short, entry.flag, entry.negative]
                cells = [
                    ", ".join(f"`{flag}`" for flag in flags if flag),
                    ", ".join(f"`{variable}`" for variable in entry.variables),
                    entry.show(entry.default),
                    entry.allowed,
                    entry.help,
                ]
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
