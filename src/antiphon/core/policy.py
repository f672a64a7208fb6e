"""Where strictness and OpenAI's own habits differ, the policy decides (contract section 0).

A frozen object with one field per difference; a field arrives with its feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Policy:
    """The strict preset is the default of every field.

    `hosted_tools` (P1): leave tools that run elsewhere out of the prompt instead of refusing
    them. `custom_tools` (P2): serve custom, namespace and client-side tool_search tools and
    `additional_tools` items. `map_effort` (P6): turn `reasoning.effort` into template
    variables. `truncation` (P4): serve `truncation: auto` instead of refusing it. `any_model`
    (P8): an unknown model name means the default model. `keep_alive` (P9): an SSE comment, or
    an event that every official client takes.
    """

    hosted_tools: bool = False
    custom_tools: bool = False
    map_effort: bool = False
    truncation: bool = False
    any_model: bool = False
    keep_alive: Literal["comment", "event"] = "comment"


PRESETS = {
    "strict": Policy(),
    "openai": Policy(
        hosted_tools=True,
        custom_tools=True,
        map_effort=True,
        truncation=True,
        any_model=True,
        keep_alive="event",
    ),
}
