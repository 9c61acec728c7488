"""The gate file: who may write it, and every problem at its place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.config.paths import Paths
from bailiwick.errors import InputInvalid
from bailiwick.gate.spec import (
    FILE,
    PROTECTED,
    CheckSpec,
    GateSpec,
    Service,
    gate_schema,
    read_gate,
)
from bailiwick.gate.spec_lookup import SpecLookup, find_spec
from bailiwick.git.store import GitStore
from tests.unit.git.repository_setup import RepositorySetup, make_scene

WHOLE = b"""\
prepare: [[uv, sync, --frozen]]
copy: [.env.test]
services: {db: {image: "postgres:16", ready: [pg_isready]}}
checks:
  - {name: lint, run: [ruff, check, .]}
  - {name: tests, run: [pytest, -q], kind: pytest, timeout: 20m}
  - {name: secrets, kind: secret-scan}
  - {name: size, kind: diff-size, max_lines: 2000, max_files: 50}
protected: [".bailiwick/**", "tests/**", "**/conftest.py", "pyproject.toml", ".github/**"]
"""
SMALL = b"checks: [{name: tests, run: ['true']}]\n"


def test_the_documented_file_is_read() -> None:
    """It stands in the documentation: who copies it must get what it says."""
    spec = read_gate(WHOLE, FILE, "base")
    assert spec.prepare == (("uv", "sync", "--frozen"),)
    assert spec.copy == (".env.test",)
    assert spec.services == (Service("db", "postgres:16", ("pg_isready",)),)
    assert [(c.name, c.kind, c.run, c.timeout) for c in spec.checks] == [
        ("lint", "command", ("ruff", "check", "."), 1200.0),
        ("tests", "pytest", ("pytest", "-q"), 1200.0),
        ("secrets", "secret-scan", (), 1200.0),
        ("size", "diff-size", (), 1200.0),
    ]
    assert spec.checks[3].options == {"max_lines": 2000, "max_files": 50}
    assert spec.protected == (".bailiwick/**", "tests/**", "**/conftest.py", "pyproject.toml", ".github/**")


def test_the_gate_file_is_protected_whatever_it_says() -> None:
    """A list of protected paths that forgets the gate itself would let the agent write its own gate."""
    assert ".bailiwick/**" in read_gate(SMALL + b"protected: [src/**]\n", FILE, "base").protected
    assert set(PROTECTED) < set(read_gate(SMALL, FILE, "base").protected)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("cheks: []", "1:1", "'cheks' is not known"),
        ("checks: []", "1:9", "not empty"),
        ("checks: [{name: a, run: [x], kind: pytets}]", "1:36", "'pytets' is not known"),
        ("checks: [{name: a, run: [x], max_lines: 3}]", "1:30", "'max_lines' is not known"),
        ("checks: [{name: a}]", "1:10", "'run' is missing"),
        ("checks: [{name: a, run: ls -l}]", "1:25", "a list"),
        ("checks: [{name: a, run: [x]}, {name: a, run: [y]}]", "1:38", "two checks are named 'a'"),
        ("checks: [{name: a, run: [x], timeout: soon}]", "1:39", "a duration"),
        ("checks: [{name: 'a b', run: [x]}]", "1:17", "a name"),
        ("checks: [{name: a, run: [x]}]\nprotected: ['!x']", "2:13", "exceptions"),
        ("checks: [{name: a, run: [x]}]\ncopy: [../x]", "2:8", "not a path of a file below"),
        ("checks: [{name: a, run: [x]}]\ncopy: ['*.env']", "2:8", "not a path of a file below"),
        ("checks: [{name: a, run: [x]}]\nservices: {db: {}}", "2:16", "'image' is missing"),
        ("checks: [{name: a, run: [x]}]\nprepare: [uv sync]", "2:11", "a list"),
    ],
)
def test_a_problem_is_told_at_its_place(text: str, place: str, words: str) -> None:
    """A typo in a gate must never make it weaker in silence."""
    with pytest.raises(InputInvalid) as failed:
        read_gate(text.encode(), FILE, "base")
    problems = failed.value.problems()
    assert any(str(p.place) == f"{FILE}:{place}" and words in p.what + p.hint for p in problems), problems


def test_equal_gates_have_equal_digests_whoever_wrote_them() -> None:
    """Reports are compared by the policy digest; where the file lay is no difference in policy."""
    one = read_gate(WHOLE, FILE, "base")
    assert one.digest == replace(one, origin="operator", file="/x").digest
    assert one.digest != replace(one, protected=()).digest
    assert one.digest != replace(one, checks=(*one.checks, CheckSpec("more", run=("x",)))).digest


def test_the_schema_accepts_what_the_reader_accepts() -> None:
    """Editors check with the schema; it must not complain about the documented file."""
    import jsonschema_rs
    import yaml

    check = jsonschema_rs.validator_for(gate_schema())
    assert check.is_valid(yaml.safe_load(WHOLE))
    assert not check.is_valid({"checks": [{"run": ["x"]}]})
    assert not check.is_valid({**json.loads('{"checks": [{"name": "a"}]}'), "cheks": 1})


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    return make_scene(tmp_path)


def _found(scene: RepositorySetup, protected: tuple[str, ...] = (), tools: tuple[str, ...] = ()) -> GateSpec:
    paths = Paths(scene.top / "config", scene.state, scene.top / "cache", scene.top / "run", scene.top / "etc")

    async def history(git_store: GitStore) -> GateSpec:
        where = SpecLookup(paths, scene.repo, protected, lambda name: name in tools)
        return await find_spec(git_store, await git_store.resolve("HEAD"), where)

    return scene.run(history)


def test_the_file_of_the_base_commit_counts_and_an_edit_is_pointed_out(scene: RepositorySetup) -> None:
    """An agent that can edit the work tree must not thereby edit the gate."""
    scene.commit({FILE: SMALL})
    assert _found(scene).notes == ()
    scene.put({FILE: "checks: [{name: other, run: [x]}]\n"})
    spec = _found(scene)
    assert [check.name for check in spec.checks] == ["tests"]
    assert spec.origin == "base"
    assert "not used" in spec.notes[0].what
    assert str(spec.notes[0].place) == str(scene.repo / FILE)


def test_the_operators_file_wins_the_one_for_the_repository_first(scene: RepositorySetup) -> None:
    """The operator decides on their machine, whatever a repository says."""
    scene.commit({FILE: SMALL})
    scene.git("remote", "add", "origin", "https://example.org/team/project.git")
    scene.put({"gate.yaml": "checks: [{name: all, run: [x]}]\n"}, scene.top / "config")
    assert (_found(scene).origin, _found(scene).checks[0].name) == ("operator", "all")
    scene.put({"repos/example.org/team/project.gate.yaml": "checks: [{name: one, run: [x]}]\n"}, scene.top / "config")
    assert _found(scene).checks[0].name == "one"


def test_a_bad_committed_file_is_an_error_and_not_a_detected_gate(scene: RepositorySetup) -> None:
    """Falling back to a detected gate would make breaking the file a way around it."""
    scene.commit({FILE: "checks: 3\n"})
    with pytest.raises(InputInvalid):
        _found(scene)


def test_without_a_file_a_gate_is_detected_and_the_configuration_protects_more(scene: RepositorySetup) -> None:
    """The first run in a repository needs no set-up, and the operator's paths hold there too."""
    scene.commit({"tests/test_a.py": "def test_a(): pass\n", "pyproject.toml": "[tool.ruff]\n"})
    spec = _found(scene, protected=("infra/**",), tools=("ruff", "pytest"))
    assert [check.name for check in spec.checks] == ["lint", "tests", "secrets"]
    assert spec.origin == "detected"
    assert {"infra/**", ".bailiwick/**", "tests/**"} <= set(spec.protected)
