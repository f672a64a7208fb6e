"""The pages that are generated or make claims about the code."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.config import OPTIONS, reference
from antiphon.options import Option

EXAMPLE = re.compile(r"<!-- test -->\n```(sh|python)\n(.*?)```", re.DOTALL)

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_configuration_page_is_up_to_date() -> None:
    assert read("docs/configuration.md") == reference(), (
        "run: antiphon config --markdown > docs/configuration.md"
    )


@pytest.mark.parametrize("entry", OPTIONS.values(), ids=lambda entry: entry.name)
def test_the_configuration_page_has_every_option(entry: Option) -> None:
    """S1: each flag with its variables."""
    page = read("docs/configuration.md")
    names = [entry.flag, *entry.variables]
    assert all(f"`{name}`" in page for name in names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    assert "./scripts/test\n" in read("README.md")
    assert "./scripts/test\n" in read(".ci/run")


def test_the_changelog_has_an_unreleased_section() -> None:
    assert "\n## [Unreleased]\n" in read("CHANGELOG.md")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a running server that answers to the name of the default model."""
    command = [sys.executable, "-m", "antiphon", "serve", "--engine", "scripted"]
    command += ["--alias", "smollm2-135m-instruct", "--port", "0", "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"http://(127\.0\.0\.1:\d+)/v1", process.stdout.readline())
            assert found is not None
            yield found[1]
        finally:
            process.terminate()


@pytest.mark.parametrize(("language", "code"), EXAMPLE.findall(read("README.md")))
def test_an_example_of_the_readme_runs(server: str, language: str, code: str) -> None:
    """E1, C7, C11: as JSON, chained, streamed, with curl and the SDK."""
    assert "127.0.0.1:8080" in code
    code = code.replace("127.0.0.1:8080", server)
    if language == "sh" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    interpreter = [sys.executable, "-c"] if language == "python" else ["sh", "-euc"]
    result = subprocess.run([*interpreter, code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout
    assert '"error":{' not in result.stdout
