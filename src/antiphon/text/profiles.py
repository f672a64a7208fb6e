"""temporary"""
from __future__ import annotations
from dataclasses import dataclass
from antiphon.text.answer import Thinking
from antiphon.text.tools.base import Dialect
from antiphon.text.tools.hermes import Hermes
from antiphon.text.tools.mistral import Mistral
from antiphon.text.tools.llama3 import Llama3
from antiphon.text.tools.qwen_coder import QwenCoder
DIALECTS: dict[str, Dialect] = {d.name: d for d in (Hermes(), Mistral(), Llama3(), QwenCoder())}
@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    dialect: Dialect
    thinking: Thinking | None = None
    skip: tuple[str, ...] = ()
    @property
    def markers(self) -> tuple[str, ...]:
        t = self.thinking
        return (*self.dialect.openers, *((t.open, *t.closes) if t else ()), *self.skip)
def detect(source: str | None) -> Profile:
    th = Thinking("<think>", ("</think>",)) if source and "<think>" in source else None
    return Profile("hermes", Hermes(), th)
def override(profile: Profile, tool_format: str | None, reasoning_format: str | None) -> Profile:
    d = DIALECTS[tool_format] if tool_format else profile.dialect
    t = profile.thinking
    if reasoning_format == "think": t = Thinking("<think>", ("</think>",))
    if reasoning_format == "none": t = None
    return Profile(profile.name, d, t, profile.skip)
