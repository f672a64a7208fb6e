"""An option: how one setting is declared, named, checked and shown.

Decides what a declaration can say and which texts are values of it. It must not know which
settings exist (`config` has them) nor where a value comes from.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

PREFIX = "ANTIPHON_"

Kind = Literal["string", "integer", "switch", "path", "list"]
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


def option(
    default: Any,
    help: str,
    *,
    group: str,
    unset: str = "none",
    short: str | None = None,
    env: tuple[str, ...] = (),
    minimum: int | None = None,
    maximum: int | None = None,
    pattern: str = r"(?s).+",
    allowed: str | None = None,
    secret: bool = False,
) -> Any:
    """A field of `Settings`.

    Args:
        default: the value when nobody gives one; None where the field may be None.
        help: one or two sentences without a full stop at the end.
        group: the heading under which help and documentation list the option.
        unset: what None stands for, in words.
        short: a further flag of one letter (`-m`).
        env: variables that are read after `ANTIPHON_<NAME>`, first one first.
        minimum: least integer.
        maximum: greatest integer.
        pattern: what a whole string must match.
        allowed: the pattern (or the form of a list) in words.
        secret: never shown, neither in `antiphon config` nor in an error.
    """
    metadata = {key: value for key, value in locals().items() if key != "default"}
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True)
class Option:
    """One setting, as the command line and the documentation see it."""

    name: str
    kind: Kind
    default: Any
    choices: tuple[str, ...]
    help: str
    group: str
    unset: str
    short: str | None
    env: tuple[str, ...]
    minimum: int | None
    maximum: int | None
    pattern: str
    allowed: str
    secret: bool

    @property
    def flag(self) -> str:
        """The long flag, `--ctx-size`."""
        return "--" + self.name.replace("_", "-")

    @property
    def negative(self) -> str | None:
        """The flag that switches off what is neither on nor off by default."""
        return "--no-" + self.flag[2:] if self.kind == "switch" and self.default is None else None

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables, the one that counts first first."""
        return (PREFIX + self.name.upper(), *self.env)

    def show(self, value: object) -> str:
        """A value in words, as the documentation and `antiphon config` print it."""
        match value:
            case None:
                return self.unset
            case bool():
                return "on" if value else "off"
            case tuple():
                return ",".join(value) or "none"
            case _:
                return str(value) or "empty"

    def parse(self, value: object) -> Any:
        """A value of the field's type from a string or from a value of a configuration file.

        Raises:
            ValueError: it is not allowed.
        """
        match self.kind, value:
            case "switch", bool():
                return value
            case "switch", str() if value.strip().lower() in TRUE | FALSE:
                return value.strip().lower() in TRUE
            case "integer", int() if not isinstance(value, bool):
                return self._in_range(value)
            case "integer", str() if re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()):
                return self._in_range(int(value))
            case "path", str() if value:
                return Path(value).expanduser()
            case "path", Path():
                return value.expanduser()
            case "list", str():
                return self._items([value])
            case "list", list() | tuple() if all(isinstance(item, str) for item in value):
                return self._items(value)
            case "string", str() if self.choices and value.lower() in self.choices:
                return value.lower()
            case "string", str() if not self.choices and re.fullmatch(self.pattern, value):
                return value
        raise ValueError

    def _in_range(self, value: int) -> int:
        if self.minimum is not None and value < self.minimum:
            raise ValueError
        if self.maximum is not None and value > self.maximum:
            raise ValueError
        return value

    def _items(self, values: Sequence[str]) -> tuple[str, ...]:
        items = (item.strip() for value in values for item in re.split(r"[,\n]", value))
        found = tuple(item for item in items if item)
        if self.secret and not found:
            # A key list that is given but empty must not mean "no key needed".
            raise ValueError
        return found


def _allowed(kind: Kind, choices: Sequence[str], low: int | None, high: int | None) -> str:
    if choices:
        return "one of " + ", ".join(choices)
    numbers = "a whole number"
    if low is not None:
        numbers += f" from {low} to {high}" if high is not None else f" of {low} or more"
    return {
        "string": "a text that is not empty",
        "integer": numbers,
        "switch": "true or false",
        "path": "a path",
        "list": "a list separated by commas",
    }[kind]


def declared(settings: type) -> dict[str, Option]:
    """The options that the fields of a dataclass declare, by name and in their order."""
    hints = get_type_hints(settings)
    options = {}
    for field in dataclasses.fields(settings):
        hint = hints[field.name]
        if NoneType in get_args(hint):
            hint = get_args(hint)[0]
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        kinds: dict[Any, Kind] = {int: "integer", bool: "switch", Path: "path"}
        kind = "list" if get_origin(hint) is tuple else kinds.get(hint, "string")
        declaration = dict(field.metadata)
        declaration["allowed"] = declaration["allowed"] or _allowed(
            kind, choices, declaration["minimum"], declaration["maximum"]
        )
        options[field.name] = Option(
            name=field.name, kind=kind, default=field.default, choices=choices, **declaration
        )
    return options
