"""`bailiwick config` as a person meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from bailiwick.cli.commands.config import config
from bailiwick.errors import InputInvalid, NotReady, UsageError


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's file, in a fresh home; commands are given in an empty directory."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = tmp_path / "home" / "config" / "config.yaml"
    file.parent.mkdir(parents=True)
    return file


def run(*words: str) -> Result:
    done = CliRunner().invoke(config, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_show_prints_values_as_people_write_them(person: Path) -> None:
    """Times and sizes in units, limits without an end by their word."""
    person.write_text("retention: {runs: 36h}\n")
    lines = {line.split(maxsplit=1)[0]: line.split(maxsplit=1)[1] for line in run("show").stdout.splitlines()}
    assert lines["budget.run.wall"] == "12h"
    assert lines["retention.runs"] == "1d12h"
    assert lines["retention.max_disk"] == "20 GB"
    assert lines["budget.run.agent_calls"] == "unlimited"


def test_show_names_the_origin_of_each_value(person: Path) -> None:
    """The question behind `config show` is mostly: who said that?"""
    person.write_text("backend: codex\n")
    assert run("show", "backend", "--origin").stdout.split() == ["backend", "codex", f"{person}:1:10"]


def test_show_as_json_is_one_document_with_nothing_secret_in_it(person: Path) -> None:
    """It is pasted into issues."""
    person.write_text("credentials: {main: {token: '${secret:a/b#c}'}}\n")
    document = json.loads(run("show", "--json").stdout)
    assert document["credentials.main.token"] == "${secret:***}"
    assert document["budget.run.wall"] == 43200
    origin = json.loads(run("show", "credentials", "--json", "--origin").stdout)
    assert origin["credentials.main.token"]["origin"] == [f"{person}:1:29"]


def test_get_prints_the_plain_value(person: Path) -> None:
    """For scripts: numbers in seconds, lists and sections as JSON, nothing for what is not set."""
    person.write_text("sandbox: {allow: [a.example]}\n")
    assert run("get", "budget.run.wall").stdout == "43200\n"
    assert run("get", "sandbox.allow").stdout == '["a.example"]\n'
    assert run("get", "model").stdout == "\n"
    assert json.loads(run("get", "budget.day").stdout)["usd"] == 40


def test_set_writes_the_persons_file_and_says_if_something_else_counts(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that is set and does not count would puzzle for an hour."""
    done = run("set", "backend", "codex")
    assert person.read_text() == "backend: codex\n"
    assert (done.stdout, done.stderr) == (f"{person}: backend is set\n", "")
    monkeypatch.setenv("AGENT_CLI", "copilot")
    assert "here copilot counts, from AGENT_CLI" in run("set", "backend", "codex").stderr


@pytest.mark.usefixtures("person")
def test_a_terminal_escape_in_a_value_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text from elsewhere is data, never a command to the terminal; files can't even hold one."""
    monkeypatch.setenv("BAILIWICK_MODEL", "a\x1b[31mb")
    assert run("get", "model").stdout == "a\\x1b[31mb\n"


def editor(tmp_path: Path, body: str) -> str:
    script = tmp_path / "editor.py"
    script.write_text(f"import sys\nfrom pathlib import Path\nfile = Path(sys.argv[1])\n{body}\n")
    return f"{sys.executable} {script}"


def test_edit_replaces_the_file_only_by_a_valid_one(
    person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid draft is kept and gone on with; the file itself never is invalid."""
    person.write_text("backend: claude\n")
    monkeypatch.setenv("EDITOR", editor(tmp_path, "file.write_text('backendd: x\\n')"))
    with pytest.raises(InputInvalid) as caught:
        run("edit")
    assert "'backend'" in caught.value.hint
    assert person.read_text() == "backend: claude\n"
    monkeypatch.setenv("EDITOR", editor(tmp_path, "file.write_text(file.read_text().replace('dd', 'd'))"))
    assert run("edit").stdout == f"{person} written\n"
    assert person.read_text() == "backend: x\n"
    assert [path.name for path in person.parent.iterdir()] == ["config.yaml"]


def test_edit_without_a_working_editor_changes_nothing(
    person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None named, one that isn't there, one that fails: each said, nothing written."""
    with pytest.raises(UsageError):
        run("edit")
    monkeypatch.setenv("EDITOR", "no-such-editor-anywhere")
    with pytest.raises(UsageError):
        run("edit")
    monkeypatch.setenv("EDITOR", editor(tmp_path, "sys.exit(3)"))
    with pytest.raises(NotReady):
        run("edit")
    assert not person.exists()


def test_check_names_the_files_that_count_and_raises_what_is_wrong(person: Path) -> None:
    """Every problem with its place; the root command prints them and exits 2."""
    person.write_text("backend: codex\n")
    assert str(person) in run("check").stdout
    person.write_text("a: 1\nb: 2\n")
    with pytest.raises(InputInvalid) as caught:
        run("check")
    assert [str(problem.place) for problem in caught.value.problems()] == [f"{person}:1:1", f"{person}:2:1"]


def test_path_names_every_place_and_says_what_is_not_there(person: Path) -> None:
    """The first thing to ask when a setting seems to have no effect."""
    places = json.loads(run("path", "--json").stdout)
    assert places["person"] == str(person)
    assert f"person   {person}  (not there)" in run("path").stdout


def test_the_group_is_called_config() -> None:
    """The root command loads it by this name."""
    assert isinstance(config, click.Group)
    assert (config.name, sorted(config.commands)) == ("config", ["check", "edit", "get", "path", "set", "show"])
