"""Completion in a real bash, and what the protocols of the other shells are given."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.command import BAILIWICK, Person

pytestmark = pytest.mark.slow

HELLO = """version: 1
name: hello
start: greet
nodes:
  - {id: greet, type: script, script: scripts/greet.sh, next: done}
  - {id: done, type: terminal}
"""
ASKED = """
compopt() { echo files; }
eval "$(bailiwick completion bash)"
_completed() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _bailiwick_completion bailiwick "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  printf '%s\\n' "${COMPREPLY[@]}"
  echo ---
}
"""
needs_bash = pytest.mark.needs("bash")


def _env(person: Person) -> dict[str, str]:
    return {**person.env(), "PATH": f"{Path(BAILIWICK).parent}{os.pathsep}{os.environ['PATH']}"}


def _in_bash(person: Person, *lines: tuple[str, ...]) -> list[list[str]]:
    """What bash is given for each command line, whose last word is unfinished."""
    script = ASKED + "".join(f"_completed {shlex.join(('bailiwick', *words))}\n" for words in lines)
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=person.cwd,
        env=_env(person),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert not done.stderr, done.stderr
    return [part.split("\n")[:-1] for part in done.stdout.split("---\n")][:-1]


@needs_bash
def test_bash_completes_what_is_there(person: Person) -> None:
    """Commands, runs, nodes, workflows, skills, keys; file names stay what they are in a shell."""
    flow = person.workflow("hello", HELLO, greet_sh="true\n")
    assert person.runs("run", flow, "--run-id", "one").code == 0
    (person.cwd / "issue.md").touch()
    found = _in_bash(
        person,
        ("st",),
        ("run", "hel"),
        ("run", "iss"),
        ("validate", "hel"),
        ("issue-to-pr", "is"),
        ("why", "hello-"),
        ("logs", "hello-one", "gr"),
        ("runs", "show", "hello"),
        ("runs", "rewind", "hello-one", "g"),
        ("skill", "show", "td"),
        ("config", "get", "budget.run.u"),
        ("run", "x", "--params-file", "is"),
        ("help", "gra"),
        ("runs", "re"),
        ("resume", "nosuch"),
    )
    assert found == [
        ["status", "stop", "stats"],
        ["files", ""],
        ["issue-to-pr", "issue.md"],
        ["files", ""],
        ["files", ""],
        ["hello-one"],
        ["greet"],
        ["hello-one"],
        ["greet"],
        ["tdd"],
        ["budget.run.usd"],
        ["files", ""],
        ["graph"],
        ["resume", "rewind", "reload", "reask", "rebuild"],
        [""],
    ]


@pytest.mark.parametrize(("shell", "shown"), [("zsh", "plain\nhello-one\ndone at done"), ("fish", "plain,hello-one")])
def test_other_shells_get_the_same_names(person: Person, shell: str, shown: str) -> None:
    """The same answers in the form that each shell's script reads."""
    flow = person.workflow("hello", HELLO, greet_sh="true\n")
    assert person.runs("run", flow, "--run-id", "one").code == 0
    asked = {"_BAILIWICK_COMPLETE": f"{shell}_complete", "COMP_WORDS": "bailiwick resume hello", "COMP_CWORD": "2"}
    env = {**_env(person), **asked} if shell == "zsh" else {**_env(person), **asked, "COMP_CWORD": "hello"}
    done = subprocess.run(
        [BAILIWICK], cwd=person.cwd, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert shown in done.stdout
    script = person.runs("completion", shell)
    assert (script.code, "_BAILIWICK_COMPLETE" in script.out) == (0, True)


def test_completion_never_fails_a_shell(person: Person) -> None:
    """No state, no repository, a damaged file: nothing is completed and nothing is printed or made."""
    asked = {"_BAILIWICK_COMPLETE": "bash_complete", "COMP_WORDS": "bailiwick why x", "COMP_CWORD": "2"}
    for damaged in (False, True):
        if damaged:
            (person.home / "state").mkdir(parents=True)
            (person.home / "state" / "bailiwick.db").write_text("no database")
        done = subprocess.run(
            [BAILIWICK],
            cwd=person.cwd,
            env={**_env(person), **asked},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert (done.stdout.strip(), done.stderr) == ("", "")
        assert damaged or not person.home.exists()
