"""Request bodies and scripts that several tests send, and how a prompt is shown for comparing."""

from __future__ import annotations

from typing import Any

from antiphon.engines.scripted import ScriptedEngine

Json = dict[str, Any]

WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather for a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
TIME: Json = {
    "type": "function",
    "name": "get_time",
    "parameters": {
        "type": "object",
        "properties": {"zone": {"type": "string"}},
        "required": ["zone"],
        "additionalProperties": False,
    },
}
ROME = '{"city":"Rome"}'
# One red pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
OK: Json = {"chunks": ["ok"]}
CALLS_WEATHER: Json = {"tool_calls": [{"name": "get_weather", "arguments": ROME}]}


def user(text: Any) -> Json:
    """A user message without `type`."""
    return {"role": "user", "content": text}


def assistant(text: Any) -> Json:
    """An assistant message without `type`."""
    return {"role": "assistant", "content": text}


def call(call_id: str, name: str = "get_weather", arguments: str = ROME) -> Json:
    """A function call."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, text: Any) -> Json:
    """What a function returned."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def image(url: Any) -> Json:
    """An image part."""
    return {"type": "input_image", "image_url": url}


def turns(engine: ScriptedEngine, index: int = -1) -> list[tuple[str, str]]:
    """Role and content of every turn that a generation was given."""
    return [(turn.role, turn.content) for turn in engine.calls[index].prompt.turns]


def text_of(response: Json) -> str:
    """The text of a response's messages."""
    return "".join(
        part["text"]
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
    )
