"""Params on the command line: checked before anything starts, misspelt ones told, kept by the run."""

from __future__ import annotations

import json

import pytest

from tests.unit.runs.house import Machine

PLAIN = """
version: 1
name: plain
vars: {who: you}
start: say
nodes:
  - {id: say, type: set, values: {said: "hello {{ who }} {{ mood }}"}, next: done}
  - {id: done, type: terminal}
"""
TYPED = """
version: 1
name: rel
params:
  tag: {type: string, pattern: "^v[0-9]+$"}
  count: {type: integer, default: 1}
start: say
nodes:
  - {id: say, type: set, values: {said: "{{ tag }} {{ count }}"}, next: ask}
  - {id: ask, type: ask, question: "go?", choices: ["yes"], next: done}
  - {id: done, type: terminal}
"""


def _run(house: Machine, name: str, *words: str) -> tuple[int, str]:
    answer = house.say("run", str(house.root / "work" / name), *words)
    return answer.code, answer.out + answer.err


def test_a_param_that_nothing_reads_is_told_with_the_nearest_name(house: Machine) -> None:
    """Any name is accepted without `params:`; one that no vars and no template knows is probably misspelt."""
    house.write(PLAIN, "plain")
    code, text = _run(house, "plain", "--params", '{"whoo": 1}')
    assert code == 0
    assert "'whoo'" in text
    assert "did you mean 'who'?" in text
    code, text = _run(house, "plain", "--params", '{"mood": "fine"}')
    assert code == 0
    assert "nothing in the workflow reads" not in text


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ('{"tagg": "v1", "tag": "v1"}', "did you mean 'tag'"),
        ('{"tag": "1.0"}', "does not match"),
        ('{"tag": "v1", "count": "two"}', 'is not of type "integer"'),
    ],
)
@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_params_that_do_not_fit_are_refused(house: Machine, params: str, message: str, flags: tuple[str, ...]) -> None:
    """A run and a dry run check the same; nothing is started."""
    house.write(TYPED, "rel")
    code, text = _run(house, "rel", "--params", params, *flags)
    assert (code, message in text) == (2, True), text
    assert json.loads(house.say("runs", "list", "--json").out)["runs"] == []


def test_a_dry_run_needs_no_params_and_warns_as_a_run_does(house: Machine) -> None:
    """What is missing is stood in for."""
    house.write(TYPED, "rel")
    house.write(PLAIN, "plain")
    assert _run(house, "rel", "--dry-run")[0] == 0
    code, text = _run(house, "plain", "--dry-run", "-p", "whoo=1")
    assert (code, "did you mean 'who'?" in text) == (0, True)


def test_one_value_is_set_by_key_and_value(house: Machine) -> None:
    """As text where the schema says so, else as JSON where it is JSON; it wins over --params."""
    house.write(TYPED, "rel")
    where = ("--run-id", "x", "--runs-dir", str(house.root / "runs"))
    code, text = _run(house, "rel", *where, "-p", "tag=v2", "--params", '{"tag": "v1", "count": 5}', "-p", "count=7")
    assert code == 3, text
    context = json.loads((house.root / "runs" / "rel-x" / "context.json").read_text())
    assert (context["said"], context["count"]) == ("v2 7", 7)
    assert _run(house, "rel", "-p", "tag")[0] == 2


def test_a_run_that_exists_needs_no_params_again_and_refuses_others(house: Machine) -> None:
    """The hint of the refusal works: leave them out to go on."""
    house.write(TYPED, "rel")
    assert _run(house, "rel", "--run-id", "r1", "-p", "tag=v1")[0] == 3
    assert _run(house, "rel", "--run-id", "r1")[0] == 3
    assert _run(house, "rel", "--run-id", "r1", "-p", "tag=v1")[0] == 3
    code, text = _run(house, "rel", "--run-id", "r1", "-p", "tag=v2")
    assert (code, "other params: tag" in text) == (2, True), text
    assert house.say("run", "--resume-run", "rel-r1", "-p", "tag=v2").code == 2
    assert house.say("run", "--resume-run", "rel-r1", "-p", "tag=v1").code == 3


def test_an_empty_run_id_is_refused(house: Machine) -> None:
    """It is not the run `default`."""
    house.write(PLAIN, "plain")
    code, text = _run(house, "plain", "--run-id", "")
    assert (code, "run id is empty" in text) == (2, True), text


def test_the_latest_run_is_the_latest_of_the_runs_directory(house: Machine) -> None:
    """An empty directory has none: another workflow's run is not gone on with."""
    house.write(TYPED, "rel")
    assert _run(house, "rel", "-p", "tag=v1", "--runs-dir", str(house.root / "one"))[0] == 3
    answer = house.say("run", "--resume-latest", "--runs-dir", str(house.root / "two"))
    assert (answer.code, "no run in" in answer.err) == (2, True), answer.err
    assert house.say("run", "--resume-latest", "--runs-dir", str(house.root / "one")).code == 3
    assert house.say("run", "--resume-latest").code == 3


def test_a_misspelt_directory_is_named(house: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run helo` beside ./hello."""
    house.write(PLAIN, "hello")
    monkeypatch.chdir(house.root / "work")
    answer = house.say("run", "helo")
    assert (answer.code, "did you mean hello?" in answer.err) == (2, True), answer.err


def test_hints_say_what_to_write(house: Machine) -> None:
    """A number in the place of a mapping, and a tab in the place of spaces."""
    house.write(PLAIN.replace("values:", "retry: 3, values:").replace("type: set", "type: script, script: s.sh"), "r")
    answer = house.say("validate", str(house.root / "work" / "r"))
    assert "write `{max: 3}`; its fields are max, backoff" in answer.err
    house.write(PLAIN.replace("  - {id: done", "\t- {id: done"), "tab")
    answer = house.say("validate", str(house.root / "work" / "tab"))
    assert (answer.code, "there is a tab where" in answer.err) == (2, True), answer.err
