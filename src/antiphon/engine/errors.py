"""What an engine may raise. `core` turns these into errors of the API.

EngineError                  the generation failed; details are for the log only
├── EngineUnavailable        worker dead, loading or restarting: try again later
├── EngineBusy               admission queue full: try again later
├── PromptTooLong            prompt and one token do not fit the context window
└── PromptRejected           the prompt cannot be rendered (template, roles); client's fault
    ├── ConstraintRejected   a schema or grammar that the engine cannot enforce
    └── VariableRejected     a template variable that cannot be set
"""

from __future__ import annotations


class EngineError(Exception):
    """The engine failed. The message is for the log, never for the client."""


class EngineUnavailable(EngineError):
    """The engine cannot take requests now; it recovers by itself."""


class EngineBusy(EngineError):
    """The queue of waiting requests is full. `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PromptTooLong(EngineError):
    """The prompt has `tokens` tokens, the window has room for `limit`."""

    def __init__(self, tokens: int, limit: int) -> None:
        super().__init__(f"prompt of {tokens} tokens exceeds the context window of {limit}")
        self.tokens = tokens
        self.limit = limit


class PromptRejected(EngineError):
    """The prompt cannot be rendered for this model; the message may be shown to the client."""


class ConstraintRejected(PromptRejected):
    """A demanded form cannot be enforced.

    `tool` is the index of the tool whose schema is at fault, None for the output's schema.
    The message may be shown to the client.
    """

    def __init__(self, message: str, tool: int | None = None) -> None:
        super().__init__(message)
        self.tool = tool


class VariableRejected(PromptRejected):
    """A template variable has a name that belongs to the conversation itself."""
