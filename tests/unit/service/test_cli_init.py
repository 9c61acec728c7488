"""`init --mcp`: shows, asks, writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bailiwick.cli.commands.init import init
from bailiwick.errors import NotReady


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    root = tmp_path / "repo"
    (root / ".git" / "objects").mkdir(parents=True)
    (root / ".git" / "refs").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / "deep").mkdir()
    monkeypatch.chdir(root / "deep")
    return root


def say(*words: str) -> int:
    code: int = init.main(list(words), standalone_mode=False)
    return code


def test_the_entry_goes_to_the_top_of_the_repository(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clients look for the file there."""
    assert say("--mcp", "--yes") == 0
    assert json.loads((repository / ".mcp.json").read_text())["mcpServers"]["bailiwick"]["args"] == ["mcp"]
    assert "+++ .mcp.json" in capsys.readouterr().out
    assert say("--mcp") == 0
    assert "set up already" in capsys.readouterr().out


def test_without_a_word_nothing_is_written(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script that forgot `--yes` must not change a repository."""
    assert say("--mcp") == 1
    assert not (repository / ".mcp.json").exists()
    told = capsys.readouterr()
    assert '+    "bailiwick": {' in told.out
    assert "Nothing was written" in told.err


def test_outside_of_a_repository_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to set up."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotReady, match="no git work tree"):
        say("--mcp")
