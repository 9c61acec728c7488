"""`bailiwick graph`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bailiwick.cli.commands.graph import graph
from bailiwick.errors import UsageError

HELLO = """\
version: 1
name: hello
start: one
nodes:
  - {id: one, type: set, values: {x: 1}, next: done}
  - {id: done, type: terminal}
"""


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    folder = tmp_path / "hello"
    folder.mkdir()
    (folder / "workflow.yaml").write_text(HELLO)
    return folder


def _draw(*args: str) -> str:
    done = CliRunner().invoke(graph, list(args), standalone_mode=False, catch_exceptions=False)
    return done.stdout


def test_without_a_terminal_it_is_mermaid(hello: Path) -> None:
    """What is piped goes into a page, not onto a screen."""
    assert _draw(str(hello)).startswith("flowchart TD\n")


def test_a_format_can_be_asked_for(hello: Path) -> None:
    """Whatever the output is."""
    assert _draw(str(hello), "--format", "ascii").startswith("hello\n\n= one  set x\n")
    assert _draw(str(hello), "--format", "ascii", "--plain").isascii()


def test_a_file_is_written_in_the_format_its_ending_names(hello: Path, tmp_path: Path) -> None:
    """`-o picture.svg` says it all."""
    file = tmp_path / "picture.svg"
    assert _draw(str(hello), "-o", str(file)) == ""
    assert file.read_text("utf-8").startswith("<svg ")


def test_a_file_that_cannot_be_written_is_a_usage_error(hello: Path, tmp_path: Path) -> None:
    """A person gets the place and a way out, no traceback."""
    with pytest.raises(UsageError) as refused:
        _draw(str(hello), "-o", str(tmp_path / "nowhere" / "picture.svg"))
    assert refused.value.place is not None
    assert refused.value.hint
