"""A model's own chat template as a function from messages to text.

Decides how such a template is run: sandboxed, with the helpers that templates of the field
expect. It must not know what a `Prompt` is, nor what the template can render.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from antiphon.engine.errors import EngineError

Message = dict[str, Any]

# For model files that bring no template.
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
RESERVED = frozenset({"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"})
MAX_REASON = 300


class Refusal(Exception):
    """The template raised; the message is short enough to be shown."""


class ChatTemplate:
    """A compiled template. `source` is kept, because some of its traits show only there."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        """Compile `source`.

        Raises:
            EngineError: it is not a Jinja template.
        """
        self.source = source
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        try:
            self._template = _ENVIRONMENT.from_string(source)
        except (TemplateSyntaxError, RecursionError) as error:
            raise EngineError(f"the model's chat template cannot be read: {error}") from None

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Message] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The text that asks the model for its next turn.

        Raises:
            Refusal: the template raised, by intention or by a fault.
        """
        try:
            return self._template.render(
                {
                    **(variables or {}),
                    **self._tokens,
                    "messages": list(messages),
                    "tools": list(tools) if tools else None,
                    "add_generation_prompt": True,
                }
            )
        # A template is a program of the model's author: anything can come out of it.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise Refusal(reason[:MAX_REASON]) from None


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}`, which marks training targets and renders as is."""

    tags = {"generation"}  # noqa: RUF012 (declared like this by jinja2)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON: jinja2's own filter escapes `<`, `>` and `&` for HTML."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise_exception(message: object) -> NoReturn:
    raise TemplateError(str(message))


def _strftime_now(layout: str) -> str:
    return datetime.now().strftime(layout)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


_ENVIRONMENT = _environment()
