"""The tools of a request, under one flat name each, and what a call of each looks like outside.

Decides contract T2 under P2: a namespace is flattened for the model and split again in its
calls, a custom tool takes free text, a client-side search is a function of its own, and
tools may join in the middle of a history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from antiphon.engine.types import Grammar, ToolSpec
from antiphon.errors import InvalidRequest
from antiphon.schema.tools import (
    CustomTool,
    FunctionTool,
    GrammarFormat,
    NamespaceTool,
    Tool,
    ToolSearch,
)

SEARCH = "tool_search"
_SEARCH_PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}


@dataclass(frozen=True, slots=True)
class Route:
    """How calls of a tool are shown to the client."""

    kind: Literal["function", "custom", "search"]
    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Toolbox:
    """`specs` are what the engine gets, in order; `routes` say what their calls become.

    `places` are the request's fields of the specs, for errors.
    """

    specs: tuple[ToolSpec, ...] = ()
    routes: Mapping[str, Route] = field(default_factory=dict)
    places: tuple[str, ...] = ()

    @classmethod
    def of(cls, tools: Iterable[Tool], joined: Iterable[Tool] = ()) -> Toolbox:
        """The tools of a request and those that joined in its history.

        Raises:
            InvalidRequest: two tools of one name.
        """
        building = _Building()
        for index, tool in enumerate(tools):
            building.add(tool, f"tools[{index}]")
        for tool in joined:
            building.add(tool, "input", again=True)
        return cls(tuple(building.specs), building.routes, tuple(building.places))


def flat_name(name: str, namespace: str | None) -> str:
    """The engine's name of a tool in a namespace."""
    return name if namespace is None else f"{namespace}__{name}"


class _Building:
    def __init__(self) -> None:
        self.specs: list[ToolSpec] = []
        self.routes: dict[str, Route] = {}
        self.places: list[str] = []

    def add(self, tool: Tool, place: str, *, again: bool = False) -> None:
        """`again`: a tool that is known already may come once more."""
        match tool:
            case FunctionTool() | CustomTool():
                self._one(tool, None, place, again)
            case NamespaceTool():
                for index, member in enumerate(tool.tools):
                    self._one(member, tool.name, f"{place}.tools[{index}]", again)
            case ToolSearch(execution="client"):
                spec = ToolSpec(SEARCH, tool.description, tool.parameters or _SEARCH_PARAMETERS)
                self._put(spec, Route("search", SEARCH), place, again)

    def _one(
        self, tool: FunctionTool | CustomTool, namespace: str | None, place: str, again: bool
    ) -> None:
        name = flat_name(tool.name, namespace)
        if isinstance(tool, FunctionTool):
            spec = ToolSpec(name, tool.description, tool.parameters, tool.strict)
            self._put(spec, Route("function", tool.name, namespace), place, again)
            return
        grammar = None
        if isinstance(tool.format, GrammarFormat):
            grammar = Grammar(tool.format.syntax, tool.format.definition)
        spec = ToolSpec(name, tool.description, raw=True, grammar=grammar)
        self._put(spec, Route("custom", tool.name, namespace), place, again)

    def _put(self, spec: ToolSpec, route: Route, place: str, again: bool) -> None:
        if spec.name in self.routes:
            if again:
                return
            raise InvalidRequest(
                f"There are two tools of the name '{spec.name}'.", param=f"{place}.name"
            )
        self.specs.append(spec)
        self.routes[spec.name] = route
        self.places.append(place)
