"""A key that is read and not acted on does not exist: each one changes what can be seen."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from bailiwick.config.keys import KEYS
from bailiwick.errors import InputInvalid
from bailiwick.ids import Json
from tests.unit.config.places import ConfigLayers
from tests.unit.config.probes import ELSEWHERE, PROBES, Probe

ROOT = Path(__file__).parents[3]
NAME = {"power": "claude", "credentials": "mine", "forges": "mine", "endpoints": "mine", "agents": "claude"}


def _nest(name: str, value: Json) -> dict[str, Json]:
    parts = name.split(".")
    for part in reversed([NAME[parts[0]] if part == "*" else part for part in parts]):
        value = {part: value}
    return dict(value)


def _merged(one: Json, two: Json) -> Json:
    if not isinstance(one, dict) or not isinstance(two, dict):
        return two
    both = {key: _merged(one[key], two[key]) for key in one if key in two}
    return {**one, **two, **both}


def _seen(world: ConfigLayers, probe: Probe, settings: Json) -> object:
    world.write_person(json.dumps(settings))
    return probe.see(world.load())


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_every_key_changes_what_can_be_seen(world: ConfigLayers, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part that acts on it makes something else of it."""
    monkeypatch.setenv("BAILIWICK_HOME", str(world.root / "home"))
    world.git("init", "-q")
    world.git("remote", "add", "origin", "https://forge.example/o/r.git")
    (world.repository / "a").write_text("a")
    world.commit()
    monkeypatch.chdir(world.repository)
    around = probe.around or {"version": 1}
    before = _seen(world, probe, around)
    after = _seen(world, probe, _merged(around, _nest(probe.name, probe.value)))
    assert before != after


def test_no_key_is_without_a_probe() -> None:
    """Whoever adds a key shows here what it does."""
    known = {probe.name for probe in PROBES} | set(ELSEWHERE)
    assert sorted(known ^ {key.name for key in KEYS}) == []


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_a_test_that_stands_for_a_probe_is_there_and_sets_the_key(name: str) -> None:
    """A name of a test that was renamed or says nothing of the key is no probe."""
    file, _, test = ELSEWHERE[name].test.partition("::")
    text = (ROOT / file).read_text("utf-8")
    tests = {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    assert test in tests
    assert ELSEWHERE[name].word in (ast.get_source_segment(text, tests[test]) or "")


def test_the_window_that_ollama_is_asked_for_is_a_setting(world: ConfigLayers) -> None:
    """Other servers are not asked for one, so that it is refused there."""
    from bailiwick.agents.backends.ollama import OllamaBackend
    from bailiwick.agents.settings import read_settings

    world.write_person("endpoints: {ollama: {num_ctx: 4096}}")
    assert OllamaBackend.for_settings(read_settings(world.load()))._window == 4096
    world.write_person("endpoints: {mine: {num_ctx: 4096}}")
    with pytest.raises(InputInvalid):
        world.load()


def test_a_file_of_another_version_is_refused(world: ConfigLayers) -> None:
    """What a later language means by a key is not ours to guess."""
    world.write_person("version: 2\n")
    with pytest.raises(InputInvalid):
        world.load()
    world.write_person("version: 1\n")
    world.load()
