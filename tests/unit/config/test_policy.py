"""The policy's digest: it changes when a limit does, and only then; a file that anybody can write is no policy."""

from __future__ import annotations

import os

import pytest

from bailiwick.config.files import policy_problems
from bailiwick.config.policy import policy_digest
from bailiwick.errors import InputInvalid
from tests.unit.config.places import ConfigLayers


def test_the_digest_changes_with_every_layer_that_changes_a_limit(world: ConfigLayers) -> None:
    """What was approved under one set of limits can be told from what is asked under another."""
    seen = [policy_digest(world.load())]
    world.write_policy("budget: {run: {usd: 5}}")
    seen.append(policy_digest(world.load()))
    world.write_person("budget: {run: {usd: 3}}")
    seen.append(policy_digest(world.load()))
    world.variables["BAILIWICK_PUBLISH_MODE"] = "never"
    seen.append(policy_digest(world.load()))
    seen.append(policy_digest(world.load({"budget.run.usd": 1})))
    assert len(set(seen)) == 5
    assert all(len(each) == 64 for each in seen)


def test_the_digest_stays_where_only_preferences_change(world: ConfigLayers) -> None:
    """Another model or another editor is not another policy."""
    world.write_policy("budget: {run: {usd: 5}}")
    before = policy_digest(world.load())
    world.write_person("backend: codex\nmodel: other\n")
    assert policy_digest(world.load()) == before == policy_digest(world.load())


def test_the_digest_is_over_the_files_bytes_too(world: ConfigLayers) -> None:
    """A policy may say more than this version reads; its text is what people signed."""
    world.write_policy("budget: {run: {usd: 5}}\n")
    before = policy_digest(world.load())
    world.write_policy("budget: {run: {usd: 5}}  # agreed in May\n")
    assert policy_digest(world.load()) != before


def test_a_limit_of_a_name_that_the_person_chose_counts_too(world: ConfigLayers) -> None:
    """A credential's own budget is a limit like those that everybody has."""
    before = policy_digest(world.load())
    world.write_person("credentials: {main: {budget: {usd: 2}}}")
    assert policy_digest(world.load()) != before


def test_a_policy_that_everybody_can_write_is_refused(world: ConfigLayers) -> None:
    """Its limits would be anybody's; the directory counts as much as the file."""
    file = world.write_policy("budget: {run: {usd: 5}}")
    config = world.load()
    file.chmod(0o666)
    with pytest.raises(InputInvalid) as caught:
        policy_digest(config)
    assert (caught.value.code, caught.value.hint) == ("BW224", f"chmod o-w {file}")
    file.chmod(0o644)
    file.parent.chmod(0o777)
    (problem,) = policy_problems(file)
    assert str(problem.place) == str(file.parent)
    file.parent.chmod(0o1777)
    assert policy_problems(file) == []
    file.chmod(0o1666)
    assert [str(problem.place) for problem in policy_problems(file)] == [str(file)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_policy_of_another_user_is_refused(world: ConfigLayers) -> None:
    """Whoever owns it can change it, whatever its mode is."""
    file = world.write_policy("budget: {run: {usd: 5}}")
    os.chown(file, 4242, -1)
    assert [problem.hint for problem in policy_problems(file)] == [f"chown root {file}"]


def test_a_policy_that_can_not_be_read_is_an_error_not_an_absent_one(world: ConfigLayers) -> None:
    """A link to nowhere, or a directory, would otherwise lift every limit of the organisation."""
    config = world.load()
    world.machine.mkdir()
    file = world.machine / "policy.yaml"
    file.symlink_to(world.machine / "gone.yaml")
    with pytest.raises(InputInvalid):
        policy_digest(config)
    file.unlink()
    file.mkdir()
    with pytest.raises(InputInvalid):
        policy_digest(config)
