"""`bailiwick sandbox`, as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import need


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a committed file, a changed one, an ignored one and a new one."""
    root = tmp_path / "repository"
    root.mkdir()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    (root / "kept.txt").write_text("old\n")
    (root / ".gitignore").write_text("ignored.txt\n")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(("git", *command), cwd=root, check=True)
    (root / "kept.txt").write_text("changed\n")
    (root / "new.txt").write_text("new\n")
    (root / "ignored.txt").write_text("secret\n")
    return root


def _bailiwick(cwd: Path, *arguments: str, profile: str = "none", stdin: str = "") -> subprocess.CompletedProcess[str]:
    home = cwd.parent / "own"
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd.parent), "BAILIWICK_HOME": str(home)}
    env |= {"BAILIWICK_SANDBOX_PROFILE": profile}
    command = (sys.executable, "-m", "bailiwick", "sandbox", *arguments)
    return subprocess.run(
        command, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, check=False, timeout=100
    )


def test_check_tells_all_profiles_with_what_they_protect(tmp_path: Path) -> None:
    """One document on standard output and nothing else."""
    cwd = tmp_path / "somewhere"
    cwd.mkdir()
    done = _bailiwick(cwd, "check", "--json")
    found = json.loads(done.stdout)
    assert (found["profile"], found["ok"], done.returncode) == ("none", True, 0)
    assert [row["name"] for row in found["sandboxes"]] == ["bwrap", "container", "none"]
    for row in found["sandboxes"]:
        assert row["found"]
        assert bool(row["self_test"]) == row["ok"], "what works is tried, what does not says how to get it"
        assert row["ok"] or row["fix"]
    none = found["sandboxes"][2]
    assert none["chosen"]
    assert none["unprotected"]


def test_check_reads_well(tmp_path: Path) -> None:
    """What isn't protected is said where the person looks."""
    cwd = tmp_path / "somewhere"
    cwd.mkdir()
    done = _bailiwick(cwd, "check")
    assert "not protected: nothing is protected from the program" in done.stdout
    assert "sandbox.profile is none: none is used." in done.stdout


@pytest.mark.parametrize("profile", ["bwrap", "none"])
def test_a_shell_works_on_a_copy(repository: Path, profile: str) -> None:
    """The files as they are now, without what git ignores; what is done to them stays inside."""
    if profile == "bwrap":
        need("sandbox")
    script = "cat kept.txt; ls; rm kept.txt; echo x > made; exit 5"
    done = _bailiwick(repository, "shell", "--", "sh", "-c", script, profile=profile)
    assert done.returncode == 5, done.stderr
    assert done.stdout.split() == ["changed", "kept.txt", "new.txt"]
    assert (repository / "kept.txt").read_text() == "changed\n"
    assert not (repository / "made").exists()
    assert list((repository.parent / "own/cache/scratch").iterdir()) == []


def test_a_shell_takes_what_is_typed(repository: Path) -> None:
    """Without a command it is a shell, also for a script on standard input."""
    done = _bailiwick(repository, "shell", "--as", "gate", stdin="echo hello\nexit 3\n")
    assert (done.stdout.strip().splitlines()[0], done.returncode) == ("hello", 3)


def test_a_missing_program_is_127(repository: Path) -> None:
    """The exit code is passed on."""
    done = _bailiwick(repository, "shell", "--", "no-such-program")
    assert done.returncode == 127
    assert "not found" in done.stderr
