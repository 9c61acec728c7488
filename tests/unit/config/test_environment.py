"""The environment is read in one place, and what children get of it is decided there."""

from __future__ import annotations

from bailiwick.config.variables import Environment


def test_a_child_gets_the_operators_environment_without_our_secrets() -> None:
    """Scripts are the operator's code; they still have no use for our passphrase or our crash points."""
    names = {
        "PATH": "/bin",
        "HOME": "/h",
        "AWS_PROFILE": "mine",
        "LISTED": "x",
        "BAILIWICK_KEY_PASSPHRASE": "secret",
        "BAILIWICK_CRASH_AT": "here",
        "BAILIWICK_RUN": "outer",
        "BAILIWICK_HOME": "/b",
    }
    given = Environment(names).child_environment({"BAILIWICK_RUN": "inner"}, secret_names=["LISTED"])
    assert given == {
        "PATH": "/bin",
        "HOME": "/h",
        "AWS_PROFILE": "mine",
        "BAILIWICK_HOME": "/b",
        "BAILIWICK_RUN": "inner",
    }


def test_an_empty_variable_counts_as_not_set_but_no_color_counts_by_being_there() -> None:
    """`X= command` is how people unset for one command; NO_COLOR is defined by its presence."""
    env = Environment({"EDITOR": "", "VISUAL": "vi", "NO_COLOR": "", "BAILIWICK_LOG": ""})
    assert (env.text("EDITOR"), env.editor(), env.colour_wanted(), env.own_names()) == (None, "vi", False, [])


def test_the_named_accessors_read_their_variables() -> None:
    """Other modules ask for a meaning, not for a name."""
    env = Environment({"BAILIWICK_CRASH_AT": "append", "BAILIWICK_RUN": "r", "TZ": "Europe/Oslo", "HOME": "/h"})
    assert (env.crash_point(), env.inside_run(), env.zone(), str(env.home())) == ("append", "r", "Europe/Oslo", "/h")
    assert Environment({}).colour_wanted()
