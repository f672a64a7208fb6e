"""The command line: serve · config · models.

Decides how commands are spelled and how failures are told: one line, no traceback, exit code 1
for a start that failed and 2 for a setting that cannot be used. It has no logic of its own, and
imports the application inside the commands, so that `--help` stays fast.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from antiphon import __version__
from antiphon.config import OPTIONS, ConfigError, Settings, load, reference
from antiphon.options import Option

HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class Failure(click.ClickException):
    """An expected failure, told in one line."""

    def __init__(self, error: Exception) -> None:
        text = str(error)
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        super().__init__(" ".join(text.split()) or type(error).__name__)

    def show(self, file: Any = None) -> None:
        click.echo(f"antiphon: {self.message}", file=file, err=file is None)


class Misconfigured(Failure):
    """A setting that cannot be used."""

    exit_code = 2


class SettingFlag(click.Option):
    """The flag of one entry of `OPTIONS`. Click passes texts on; `config` checks them."""

    def __init__(self, option: Option) -> None:
        self.group = option.group
        declaration = f"{option.flag}/{option.negative}" if option.negative else option.flag
        names = [name for name in (option.short, declaration, option.name) if name]
        kinds = {"integer": "N", "path": "PATH", "list": "LIST", "string": "TEXT"}
        about = f"{option.help}.  [{option.show(option.default)}; {option.variables[0]}]"
        if option.kind == "switch":
            super().__init__(names, is_flag=True, default=None, help=about)
        else:
            metavar = "|".join(option.choices) or kinds[option.kind]
            multiple = option.kind == "list"
            super().__init__(names, multiple=multiple, metavar=metavar, help=about)


class SettingsCommand(click.Command):
    """A command that takes every flag of `OPTIONS` and lists them under their groups."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.context_settings = dict(HELP)
        self.params.extend(SettingFlag(option) for option in OPTIONS.values())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(parameter, "group", "Other"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _load(flags: dict[str, object]) -> tuple[Settings, dict[str, str]]:
    try:
        return load(flags, os.environ)
    except ConfigError as error:
        raise Misconfigured(error) from error


@click.group(context_settings=HELP)
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """Antiphon: a Responses API server for models that people run themselves."""


@main.command(cls=SettingsCommand)
def serve(**flags: object) -> None:
    """Serve a model over the Responses API until it is interrupted.

    Without flags this is the packaged model on http://127.0.0.1:8080/v1.
    """
    settings, _ = _load(flags)
    from antiphon import app
    from antiphon.engine.errors import EngineError

    try:
        code = app.serve(settings)
    except (ConfigError, EngineError, OSError) as error:
        raise Failure(error) from error
    sys.exit(code)


server = serve


@main.command(cls=SettingsCommand)
@click.option("--markdown", is_flag=True, help="Print docs/configuration.md and stop.")
def config(markdown: bool, **flags: object) -> None:
    """Show each setting, its value and where the value comes from; secrets stay hidden."""
    if markdown:
        click.echo(reference(), nl=False)
        return
    settings, origins = _load(flags)
    rows = []
    for option in OPTIONS.values():
        value = getattr(settings, option.name)
        hidden = option.secret and value
        shown = f"({len(value)} hidden)" if hidden else option.show(value)
        rows.append((option.flag, shown, origins[option.name]))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for flag, shown, origin in rows:
        click.echo(f"{flag:{widths[0]}}  {shown:{widths[1]}}  {origin}")


@main.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> None:
    """List the models that this installation can serve, with the files they come from."""
    if context.invoked_subcommand is not None:
        return
    settings, _ = _load({})
    from antiphon import app
    from antiphon.engine.errors import EngineError

    try:
        for name, place in app.list_models(settings):
            click.echo(f"{name}  {place}")
    except (ConfigError, EngineError, OSError) as error:
        raise Failure(error) from error


@models.command()
@click.argument("name", default="default")
def pull(name: str) -> None:
    """Download a model, so that serving needs no network; NAME is `default`."""
    from antiphon import app
    from antiphon.engine.errors import EngineError

    try:
        path = app.pull_model(name)
    except (ConfigError, EngineError, OSError) as error:
        raise Failure(error) from error
    click.echo(path)
