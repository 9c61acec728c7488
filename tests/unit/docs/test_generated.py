"""The reference says what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.cli.table import COMMANDS
from bailiwick.lang.kinds import KINDS
from docs import generate

if TYPE_CHECKING:
    import pytest


def test_the_reference_is_up_to_date() -> None:
    """A flag, key, field, event or code that changes without its page misleads whoever looks it up."""
    script = Path(generate.__file__)
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_old_page_is_noticed_and_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above is worth something only if it can fail."""
    quick = {name: generate.PAGES[name] for name in ("events.md", "exit-codes.md")}
    monkeypatch.setattr(generate, "PAGES", quick)
    assert set(generate.write(tmp_path)) == set(quick)
    (tmp_path / "events.md").write_text("old\n", "utf-8")
    (tmp_path / "left-over.md").write_text("nobody makes this\n", "utf-8")
    assert generate.outdated(tmp_path) == ["events.md", "left-over.md"]
    assert generate.write(tmp_path) == ["events.md", "left-over.md"]
    assert generate.outdated(tmp_path) == []


def test_a_wrong_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """`--chekc` in a pipeline must not pass for a check that went well."""
    assert generate.main(["--chekc"]) == 2
    assert "usage" in capsys.readouterr().err


def test_every_command_and_node_type_has_its_heading() -> None:
    """Whoever looks for a word finds it as a title."""
    cli, workflow = generate.cli_page(), generate.workflow_page()
    assert [name for name in COMMANDS if f"\n## `bailiwick {name}`" not in cli.replace("###", "##")] == []
    assert [name for name in KINDS if f"\n### `{name}`\n" not in workflow] == []


def test_every_error_code_in_the_source_is_explained() -> None:
    """A code that a message shows and the reference lacks leads nowhere."""
    text = (generate.TARGET / "errors.md").read_text("utf-8")  # up to date, or the first test here says so
    used = {code for path in generate.PACKAGE.rglob("*.py") for code in re.findall(r"BW\d{3}", path.read_text("utf-8"))}
    assert sorted(code for code in used if f"`{code}`" not in text) == []
