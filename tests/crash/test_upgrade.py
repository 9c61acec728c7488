"""Another version arrives in the middle of a run: the process becomes it, or stops with words; nothing is lost."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import apsw
import pytest

import bailiwick
from bailiwick.testing.harness import CrashCase, look
from bailiwick.testing.polling import until
from tests.crash.scene import Crowd, create, cut, go_on, judge, let_go, runs_at
from tests.crash.shapes import CHAIN, HOLD, LONG

SOON = 60.0
NEWER = "0.1.999"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An installation of the package that a test may replace."""
    source = Path(bailiwick.__file__).parent
    shutil.copytree(source, tmp_path / "site" / "bailiwick", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


def replace_package(package: Path) -> None:
    """What an installer does: a new file in the place of the old one."""
    old = package / "bailiwick" / "__init__.py"
    text = old.read_text().replace(bailiwick.__version__, NEWER)
    new = old.with_name("new")
    new.write_text(text)
    new.replace(old)


def raise_level(case: CrashCase, level: int) -> None:
    """What a newer version does when it changes the database so that older ones can't live with it."""
    with apsw.Connection(str(case.home.state / "bailiwick.db")) as db:
        db.execute("UPDATE meta SET min_app = ?", (level,))
    db.close()


def test_a_package_replaced_in_the_middle_of_a_run_takes_over(crowd: Crowd, tmp_path: Path, package: Path) -> None:
    """A run of a week outlives several releases; the process ends its node, becomes the new version and goes on."""
    case = create(LONG, tmp_path)
    process = crowd.command(case, "run", str(tmp_path / "flows" / "long"), "--no-input", package=package)
    until(lambda: runs_at(case, "work", 3), what="the third visit")
    replace_package(package)
    _, words = process.communicate(timeout=SOON)
    assert process.returncode == 0, words
    assert judge(case) == []
    seen = asyncio.run(look(case.home.state))[case.root]
    owners = seen.bodies("OwnerChanged")
    assert [owner["app"] for owner in owners] == [bailiwick.__version__, NEWER]
    assert all(f"pid {process.pid} " in owner["owner"] for owner in owners)
    assert seen.bodies("EffectLost") == [], "the node under way was finished, not cut off"


def test_a_process_stops_with_words_when_a_newer_version_takes_the_state(crowd: Crowd, tmp_path: Path) -> None:
    """It must not write what the newer one would misread; the run goes on with a version that may."""
    case = create(HOLD, tmp_path)
    process = crowd.walk(case)
    until(lambda: runs_at(case, "held"), what="the holder's work")
    raise_level(case, 99)
    let_go(case)
    _, words = process.communicate(timeout=SOON)
    assert process.returncode == 8, words
    assert "newer version" in words
    assert "Traceback" not in words
    raise_level(case, 1)
    cut(case)
    assert go_on(case) == []


def test_a_state_of_a_newer_version_is_refused_at_the_start(crowd: Crowd, tmp_path: Path) -> None:
    """Before anything is read as what it is not."""
    case = create(CHAIN, tmp_path)
    raise_level(case, 99)
    process = crowd.command(case, "run", str(tmp_path / "flows" / "chain"), "--no-input")
    _, words = process.communicate(timeout=SOON)
    assert process.returncode == 8, words
    assert "newer version" in words
    assert case.home.lines() == []
