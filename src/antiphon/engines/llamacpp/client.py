"""The HTTP interface of a llama.cpp server, as far as the engine uses it.

Decides how its answers and its failures look to the rest of the engine. Knows nothing of
prompts, processes or queues. Every request has a connection of its own, because the server
closes a connection after a stream, and closing one is the only way to cancel.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp

from antiphon.engine.errors import EngineError, EngineUnavailable, PromptTooLong

Json = dict[str, Any]

_SEPARATOR = -1  # passed through by /tokenize as it is


class ConnectionLost(EngineError):
    """The server was not there, or it broke off. Perhaps its process has just died."""


class LlamaClient:
    """Requests to the server at `address`. All raise `EngineError` where it cannot answer."""

    def __init__(self, address: str, key: str) -> None:
        self.address = address
        self._http = aiohttp.ClientSession(
            address,
            headers={"Authorization": f"Bearer {key}"},
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def healthy(self, seconds: float) -> bool:
        """Whether the server answers that it is ready. False too after so many seconds."""
        try:
            timeout = aiohttp.ClientTimeout(total=seconds)
            async with self._http.get("/health", timeout=timeout) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    async def context_size(self) -> int:
        """Tokens that prompt and answer share in one slot."""
        properties = await self._json("GET", "/props")
        return int(properties["default_generation_settings"]["n_ctx"])

    async def busy(self) -> list[Json]:
        """The slots that work on a request, with its parameters."""
        slots = await self._json("GET", "/slots")
        return [slot for slot in slots if slot["is_processing"]]

    async def tokenize(
        self, texts: Sequence[Sequence[str]], *, special: bool, add_special: bool = False
    ) -> list[list[int]]:
        """Token ids of each text. A text is a list of pieces that are tokenised one by one.

        `special`: control tokens in the text count. `add_special`: with what the model wants
        around a whole prompt; for one text only.
        """
        content: list[str | int] = []
        for pieces in texts:
            content += [*pieces, _SEPARATOR]
        body = {"content": content, "add_special": add_special, "parse_special": special}
        found: list[list[int]] = [[]]
        for token in (await self._json("POST", "/tokenize", body))["tokens"]:
            if token == _SEPARATOR:
                found.append([])
            else:
                found[-1].append(token)
        return found[:-1]

    async def complete(self, body: Json) -> aiohttp.ClientResponse:
        """Begin a streamed completion. The answer must be closed by the caller."""
        answer = await self._request("POST", "/completion", body)
        if answer.status != 200:
            await self._fail(answer)
        return answer

    async def _json(self, method: str, path: str, body: Json | None = None) -> Any:
        async with await self._request(method, path, body) as answer:
            if answer.status != 200:
                await self._fail(answer)
            try:
                return await answer.json()
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise ConnectionLost(f"llama.cpp broke off {path}: {error}") from None

    async def _request(self, method: str, path: str, body: Json | None) -> aiohttp.ClientResponse:
        try:
            return await self._http.request(method, path, json=body)
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise ConnectionLost(f"llama.cpp did not answer {path}: {error}") from None

    async def _fail(self, answer: aiohttp.ClientResponse) -> None:
        async with answer:
            try:
                error = (await answer.json())["error"]
            except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError):
                error = {"message": f"HTTP status {answer.status}"}
            raise failure(error, answer.status)


def failure(error: Any, status: int = 500) -> EngineError:
    """The exception for an error object of the server."""
    if not isinstance(error, dict):
        return EngineError(f"llama.cpp: {error}")
    if error.get("type") == "exceed_context_size_error":
        return PromptTooLong(error["n_prompt_tokens"], error["n_ctx"])
    message = f"llama.cpp: {error.get('message')}"
    return EngineUnavailable(message) if status == 503 else EngineError(message)


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[Json]:
    """The objects of a streamed answer, of which the last is to be known by its content.

    Raises:
        EngineError: an error object came; `ConnectionLost`: nothing more comes.
    """
    rest = b""
    try:
        async for chunk in answer.content.iter_any():
            # Not by lines of aiohttp: those have a maximum length.
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                name, _, data = line.partition(b": ")
                if name == b"data" and data.strip() != b"[DONE]":
                    event = json.loads(data)
                    if "error" in event:
                        raise failure(event["error"])
                    yield event
                elif name == b"error":
                    raise failure(json.loads(data))
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionLost(f"llama.cpp broke off its answer: {error}") from None
    raise ConnectionLost("llama.cpp ended its answer without an end")
