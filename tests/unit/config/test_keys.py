"""The table of keys is consistent with itself."""

from __future__ import annotations

from collections import Counter

from bailiwick.config.keys import KEYS, find_key
from bailiwick.config.limits import Ranked
from bailiwick.config.shapes import Ceiling, as_value
from bailiwick.lang.fields import Choice, Findings


def test_no_variable_stands_for_two_keys() -> None:
    """Two keys with one variable would set each other."""
    variables = Counter(name for key in KEYS for name in key.variables)
    assert [name for name, count in variables.items() if count > 1] == []


def test_every_default_has_the_shape_of_its_key() -> None:
    """A default that its own key would refuse can't be written down by a person either."""
    for key in KEYS:
        if key.default is not None:
            found = Findings()
            assert key.shape.read(as_value(key.default, key.name), found) == key.default, key.name
            assert found.problems == []


def test_every_word_of_a_ranked_limit_has_a_rank() -> None:
    """A word without a rank would fail only on the day somebody uses it."""
    for key in KEYS:
        if isinstance(key.rule, Ranked):
            assert isinstance(key.shape, Choice)
            assert sorted(key.shape.texts) == sorted(word for group in key.rule.groups for word in group)


def test_the_rights_that_only_people_give_are_closed_to_repositories() -> None:
    """The list of the configuration page, section by section."""
    closed = ("credentials.", "forges.", "endpoints.", "service.", "secrets.", "publish.", "agents.command")
    open_keys = [key.name for key in KEYS if key.name.startswith(closed) and key.repository]
    assert open_keys == []


def test_a_limit_without_an_end_can_be_written() -> None:
    """A default of None on a number is reached by the word for it, not by a huge number."""
    key = find_key("budget.run.agent_calls")
    assert key is not None
    assert isinstance(key.shape, Ceiling)
    assert key.shape.read(as_value("unlimited", "x"), Findings()) is None


def test_a_full_name_finds_the_key_behind_a_star() -> None:
    """Names below a star are the person's own."""
    key = find_key("power.claude.high")
    assert key is not None
    assert key.name == "power.*.high"
    assert find_key("power.claude") is None
    assert find_key("power..high") is None
