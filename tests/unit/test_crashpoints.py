"""Crash points: nothing happens unless armed, and then exactly there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bailiwick import crashpoints

REACH = """
import sys
from bailiwick import crashpoints
crashpoints.arm_from(sys.argv[1])
for turn in range(3):
    crashpoints.reach("append.after_commit")
    print(turn, flush=True)
"""


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    crashpoints.disarm()


def run(point: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", REACH, point], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted(crashpoints.NAMES))
def test_a_point_that_is_not_armed_does_nothing(name: str) -> None:
    """They stand in the code that people run."""
    crashpoints.reach(name)
    crashpoints.arm(name, 2)
    crashpoints.reach(name)


def test_every_point_says_what_is_done_and_what_is_not() -> None:
    """Whoever writes a crash test chooses by these sentences."""
    assert all(text.endswith(".") and len(text) > 20 for text in crashpoints.NAMES.values())


def test_an_unknown_name_is_an_error() -> None:
    """A misspelt point would make a crash test that tests nothing."""
    with pytest.raises(KeyError):
        crashpoints.reach("append.befor_commit")
    with pytest.raises(KeyError):
        crashpoints.arm("append.befor_commit")
    with pytest.raises(KeyError):
        crashpoints.arm_from("append.befor_commit:1")


@pytest.mark.parametrize("text", ["run.created:x", "run.created:0", "run.created:-1", "run.created:1:pause"])
def test_a_malformed_setting_is_refused(text: str) -> None:
    """It comes from outside."""
    with pytest.raises(ValueError):
        crashpoints.arm_from(text)


@pytest.mark.parametrize(("point", "printed"), [("", ""), (":1", ""), (":3", "0\n1\n")])
def test_the_process_dies_the_nth_time_it_gets_there(point: str, printed: str) -> None:
    """By the one signal that nothing can soften."""
    done = run(f"append.after_commit{point}")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, printed)


def test_a_point_not_reached_often_enough_lets_the_process_end() -> None:
    """So a suite can count how often a point is reached."""
    assert run("append.after_commit:4").returncode == 0


def test_a_point_may_suspend_the_process_instead() -> None:
    """A holder that sleeps through its lease and wakes up again is made this way."""
    command = [sys.executable, "-c", REACH, "append.after_commit:2:stop"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        os.kill(child.pid, signal.SIGCONT)
        out, _ = child.communicate()
    assert (child.returncode, out) == (0, "0\n1\n2\n")
