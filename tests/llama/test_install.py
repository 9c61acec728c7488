"""`tools/llama` gets the server where that is possible, and stands in nobody's way where it is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.llama import tiny_model
from tests.llama.conftest import SERVER

ROOT = SERVER.parents[2]
TOOLS = ("sh", "awk", "cat", "cksum", "cut", "dirname", "head", "mkdir", "rm", "sed", "tail")
MAKER = Path("tests/llama/tiny_model.py")


def _install(place: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a repository with nothing else, on a machine with few programs and these."""
    for file in (Path("tools/llama"), MAKER):
        (place / file).parent.mkdir(parents=True)
        shutil.copy(ROOT / file, place / file)
    (place / "bin").mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, name
        (place / "bin" / name).symlink_to(found)
    for name, text in programs.items():
        path = place / "bin" / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    env = {"PATH": str(place / "bin"), "HOME": str(place)}
    command = [place / "tools" / "llama"]
    return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False, timeout=600)


def test_without_debians_tools_it_says_so_and_goes_on(tmp_path: Path) -> None:
    """Nobody needs Debian to work on Bailiwick; but what is not tested has to be seen."""
    done = _install(tmp_path)
    assert done.returncode == 0
    assert "NO llama-server" in done.stderr
    assert "has no apt-get" in done.stderr
    assert "SKIPPED" in done.stderr
    assert not (tmp_path / ".llama").exists()


def test_packages_that_can_not_be_had_leave_nothing_that_a_test_would_find(tmp_path: Path) -> None:
    """The unstable suite is unstable: half a server must not turn other people's changes red."""
    done = _install(tmp_path, apt_get="echo the source is out >&2; exit 100", dpkg="echo amd64", dpkg_deb="exit 1")
    assert done.returncode == 0
    assert "NO llama-server" in done.stderr
    assert ("the source is out" in done.stderr) is ("could not be fetched" in done.stderr)
    assert not (tmp_path / ".llama" / "bin").exists()


def test_every_token_that_is_preferred_is_one() -> None:
    """A preference for a token that is not in the vocabulary is lost without a word."""
    tokens = tiny_model.vocabulary()
    assert len(set(tokens)) == len(tokens)
    named = {*tiny_model.PREFERRED, *tiny_model.LEADS, *tiny_model.LEADS.values()}
    assert named - set(tokens) == set()


def test_the_end_comes_before_all_and_a_closing_mark_before_its_opening_one() -> None:
    """The other way round an answer would never end."""
    best_first = sorted(tiny_model.vocabulary(), key=tiny_model.preference, reverse=True)
    assert best_first[0] == tiny_model.END
    assert best_first.index("}") < best_first.index(",") < best_first.index("{")
    assert best_first.index("]") < best_first.index("[")
    assert best_first.index('"') < best_first.index("}")
