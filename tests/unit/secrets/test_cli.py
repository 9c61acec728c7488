"""`bailiwick secrets check` as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bailiwick.cli.commands.secrets import secrets


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's file, in a fresh home; commands are given in an empty directory."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = tmp_path / "home" / "config" / "config.yaml"
    file.parent.mkdir(parents=True)
    return file


def check(*words: str) -> tuple[object, str]:
    """The exit code and what was said."""
    with CliRunner().isolation() as streams:
        code = secrets.main(["check", *words], standalone_mode=False)
        return code, streams[0].getvalue().decode()


def test_check_says_what_resolves_and_how_to_get_the_rest(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 8 until everything is there; the value is in no output."""
    person.write_text("credentials: {work: {backend: claude, token: '${secret:env:WORK_KEY}'}}\n")
    monkeypatch.delenv("WORK_KEY", raising=False)
    code, said = check()
    assert code == 8
    assert said.startswith("✗ credentials.work.token  ${secret:env:WORK_KEY}  the credential 'work', by agents")
    assert "BW263: the variable WORK_KEY is not set" in said
    assert "fix: export WORK_KEY" in said
    monkeypatch.setenv("WORK_KEY", "sk-work-123456")
    code, said = check()
    assert (code, said[0]) == (0, "✓")
    code, document = check("--json")
    assert (code, json.loads(document)["ok"], len(json.loads(document)["secrets"])) == (0, True, 1)
    assert "sk-work" not in said + document


@pytest.mark.usefixtures("person")
def test_check_without_any_reference_says_so() -> None:
    """Silence would leave open whether it looked."""
    assert check() == (0, "the configuration refers to no secret\n")
    assert json.loads(check("--json")[1]) == {"ok": True, "secrets": []}
