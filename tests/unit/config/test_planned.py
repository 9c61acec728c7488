"""What is documented and not built is refused by name, wherever it is written: nobody relies on what isn't there."""

from __future__ import annotations

import pytest

from bailiwick.config.keys import KEYS
from bailiwick.config.planned import PLANNED, PLANNED_VALUES, planned_name
from bailiwick.errors import InputInvalid, NotFound, Problem
from tests.unit.config.places import ConfigLayers

VARIABLES = {
    "BAILIWICK_DB": "postgresql://db/x",
    "BAILIWICK_DATABASE": "postgresql://db/x",
    "BAILIWICK_HOST_GRACE": "45s",
    "BAILIWICK_APPROVALS_EXPIRES": "1d",
    "BAILIWICK_SERVICE_LOGIN": "link",
    "BAILIWICK_LOG": "debug",
}


def problems(world: ConfigLayers) -> tuple[Problem, ...]:
    with pytest.raises(InputInvalid) as caught:
        world.load()
    return tuple(caught.value.problems())


def nested(name: str) -> str:
    *folders, leaf = name.split(".")
    return "".join(f"{folder}:\n{'  ' * (depth + 1)}" for depth, folder in enumerate(folders)) + f"{leaf}: {{x: 1}}\n"


@pytest.mark.parametrize("name", sorted(PLANNED))
@pytest.mark.parametrize("layer", ["person", "machine", "repository", "policy"])
def test_a_planned_key_is_refused_with_its_place_in_every_file(world: ConfigLayers, name: str, layer: str) -> None:
    """`notify` that passes a check and then never notifies costs somebody a night."""
    file = getattr(world, f"write_{layer}")(nested(name))
    (problem,) = problems(world)
    assert problem.code == "BW225"
    assert problem.what == f"{name} is not in this version yet"
    line = name.count(".") + 1
    assert str(problem.place) == f"{file}:{line}:{2 * (line - 1) + 1}"


@pytest.mark.parametrize("variable", sorted(VARIABLES))
def test_a_planned_variable_is_refused_by_its_name(world: ConfigLayers, variable: str) -> None:
    """PostgreSQL that was asked for and is silently SQLite is the worst of both."""
    world.variables[variable] = VARIABLES[variable]
    (problem,) = problems(world)
    assert (problem.code, str(problem.place)) == ("BW225", variable)


@pytest.mark.parametrize(("key", "value"), sorted(PLANNED_VALUES))
def test_a_planned_value_is_refused_by_its_name(world: ConfigLayers, key: str, value: str) -> None:
    """Vault is not the same as a misspelt provider."""
    *folders, leaf = key.replace("*", "mine").split(".")
    text = f"{leaf}: {value}"
    for folder in reversed(folders):
        text = f"{folder}: {{{text}}}"
    file = world.write_person(text)
    (problem,) = problems(world)
    assert problem.code == "BW225"
    assert value in problem.what
    assert str(problem.place).startswith(f"{file}:1:")


def test_a_planned_flag_and_a_question_for_a_planned_key_say_the_same(world: ConfigLayers) -> None:
    """`serve --db URL` is a flag that sets `database`; `config get database` asks for it."""
    with pytest.raises(InputInvalid) as caught:
        world.load({"database": "postgresql://db/x"})
    assert caught.value.problems()[0].code == "BW225"
    with pytest.raises(NotFound) as asked:
        world.load().get("notify")
    assert asked.value.code == "BW225"


def test_no_key_is_planned_and_there_at_once() -> None:
    """Whoever builds one moves it."""
    assert [key.name for key in KEYS if planned_name(key.name)] == []
