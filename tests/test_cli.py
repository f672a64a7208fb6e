"""The command line: help, settings with origins, and failures of one line."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

import antiphon
from antiphon.cli import main, server
from antiphon.config import OPTIONS, ConfigError, Settings
from antiphon.engine.errors import EngineUnavailable

HEAVY = {"starlette", "uvicorn", "pydantic", "aiohttp", "jinja2", "asyncio", "xllamacpp"}


def run(*arguments: str, command: Any = main, **environ: str) -> Result:
    """Run a command in this process, with its own streams."""
    return CliRunner().invoke(command, arguments, env=environ)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stand-in for the application, so that a test decides what it does."""
    module = ModuleType("antiphon.app")
    monkeypatch.setitem(sys.modules, "antiphon.app", module)
    monkeypatch.setattr(antiphon, "app", module, raising=False)
    return module


def raising(error: Exception) -> Callable[..., int]:
    """A function that fails with `error`, whatever it is given."""

    def fail(*_: object) -> int:
        raise error

    return fail


@pytest.mark.parametrize("command", ["serve", "config"])
def test_help_shows_every_flag_with_its_default_and_variable(command: str) -> None:
    """S1: every flag has an environment variable."""
    output = " ".join(run(command, "--help").output.split())
    for entry in OPTIONS.values():
        assert f"{entry.flag} " in output
        assert f"{entry.show(entry.default)}; {entry.variables[0]}]" in output


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, antiphon.cli\n"
        "try: antiphon.cli.main(['serve', '--help'])\n"
        "except SystemExit: print(*sys.modules)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert not HEAVY & set(output.splitlines()[-1].split())


def test_both_commands_take_the_same_flags() -> None:
    """G7: `antiphon serve` and `antiphon-server`."""
    own = run("--help", command=server).output.splitlines()[1:]
    assert own == run("serve", "--help").output.splitlines()[1:]


@pytest.mark.parametrize(("command", "first"), [(main, ["serve"]), (server, [])])
def test_serve_hands_the_settings_to_the_application(
    app: ModuleType, command: Any, first: list[str]
) -> None:
    """G7, G1: flags and environment arrive as settings, and the exit code comes back."""
    seen: list[Settings] = []

    def serve(settings: Settings) -> int:
        seen.append(settings)
        return 3

    vars(app)["serve"] = serve
    arguments = [*first, "-m", "a.gguf", "--port", "0", "--alias", "a,b", "--api-key", "k"]
    result = run(*arguments, "--api-key", "n:l", command=command, ANTIPHON_SLOTS="2")
    assert result.exit_code == 3
    assert seen == [
        Settings(model="a.gguf", port=0, alias=("a", "b"), api_key=("k", "n:l"), slots=2)
    ]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConfigError("--host 0.0.0.0 needs an API key"), "--host 0.0.0.0 needs an API key"),
        (EngineUnavailable("model.gguf:\n  not a GGUF file"), "model.gguf: not a GGUF file"),
        (OSError(98, "Address already in use"), "Address already in use"),
        (FileNotFoundError(2, "No such file", "a.gguf"), "a.gguf: No such file"),
    ],
)
def test_a_start_that_fails_is_one_line_and_exit_code_1(
    app: ModuleType, error: Exception, line: str
) -> None:
    """N8: one clear line, no traceback."""
    vars(app)["serve"] = raising(error)
    result = run("serve")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"antiphon: {line}\n"


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `antiphon serve` with the scripted engine; it is expected to fail."""
    command = [sys.executable, "-m", "antiphon", "serve", "--engine", "scripted", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_port_that_is_taken_is_one_line() -> None:
    """N8: one clear line, no traceback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = start("--port", str(port))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"antiphon: cannot listen on 127.0.0.1 port {port}: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_a_reachable_address_without_a_key_fails_to_start(host: str) -> None:
    """G5: unless --no-auth says so."""
    result = start("--host", host, "--port", "0")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"antiphon: --host {host} ")
    assert result.stderr.count("\n") == 1


def test_a_key_file_without_a_key_fails_to_start(tmp_path: Path) -> None:
    """G5: a configured but empty key list."""
    file = tmp_path / "keys"
    file.write_text("\n \n", encoding="utf-8")
    result = start("--api-key-file", str(file), "--port", "0")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("antiphon: --api-key-file ")
    assert result.stderr.count("\n") == 1


def test_a_setting_that_cannot_be_used_is_one_line_and_exit_code_2() -> None:
    result = run("serve", "--port", "http", ANTIPHON_PORT="80")
    assert result.exit_code == 2
    assert result.stderr == (
        "antiphon: --port must be a whole number from 0 to 65535, not 'http'\n"
    )


def test_an_unknown_flag_suggests_the_nearest() -> None:
    result = run("serve", "--prot", "1")
    assert result.exit_code == 2
    assert "--port" in result.stderr


def test_config_shows_values_and_origins_and_hides_keys() -> None:
    """G1: each value and where it came from."""
    result = run("config", "--port", "1", ANTIPHON_API_KEY="sesame", ANTIPHON_COMPAT="openai")
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in result.stdout.splitlines()}
    assert list(rows) == [entry.flag for entry in OPTIONS.values()]
    assert rows["--port"].split() == ["1", "--port"]
    assert rows["--compat"].split() == ["openai", "ANTIPHON_COMPAT"]
    assert rows["--slots"].split() == ["4", "default"]
    assert rows["--api-key"].split() == ["(1", "hidden)", "ANTIPHON_API_KEY"]
    assert "sesame" not in result.output


def test_config_names_a_bad_variable() -> None:
    result = run("config", ANTIPHON_SLOTS="none")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("antiphon: ANTIPHON_SLOTS must be ")


def test_models_lists_what_the_application_finds(app: ModuleType) -> None:
    """N1: what this installation can serve, without a network."""
    vars(app)["list_models"] = lambda settings: [("small", "/models/small.gguf")]
    result = run("models")
    assert (result.exit_code, result.stdout) == (0, "small  /models/small.gguf\n")


def test_models_pull_ends_with_the_path(app: ModuleType) -> None:
    vars(app)["pull_model"] = lambda name: Path(f"{name}.gguf")
    result = run("models", "pull")
    assert (result.exit_code, result.stdout) == (0, "default.gguf\n")


def test_models_pull_that_fails_is_one_line(app: ModuleType) -> None:
    vars(app)["pull_model"] = raising(ConfigError("no model is named 'x'"))
    result = run("models", "pull", "x")
    assert (result.exit_code, result.stderr) == (1, "antiphon: no model is named 'x'\n")


def test_version_is_that_of_the_package() -> None:
    assert run("--version").output == f"{antiphon.__version__}\n"
