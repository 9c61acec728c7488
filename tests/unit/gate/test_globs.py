"""Patterns of paths, as `protected` and `--allow` have them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.globs import fault_of, first_match, matches


@pytest.mark.parametrize(
    ("pattern", "path", "meant"),
    [
        ("tests/**", "tests/test_a.py", True),
        ("tests/**", "tests/a/b/c.py", True),
        ("tests/**", "tests", True),
        ("tests/", "tests/a.py", True),
        ("tests/**", "src/tests/a.py", False),
        ("tests/**", "tests2/a.py", False),
        ("tests/*", "tests/a.py", True),
        ("tests/*", "tests/a/b.py", False),
        ("**/conftest.py", "conftest.py", True),
        ("**/conftest.py", "a/b/conftest.py", True),
        ("**/conftest.py", "a/myconftest.py", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "ab", False),
        ("pyproject.toml", "pyproject.toml", True),
        ("pyproject.toml", "sub/pyproject.toml", False),
        ("/pyproject.toml", "pyproject.toml", True),
        ("pyproject.toml", "pyprojectxtoml", False),
        ("Makefile", "makefile", True),
        ("tests/**", "TESTS/a.py", True),
        ("**", "any/thing", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].txt", "a.txt", True),
        ("[!ab].txt", "a.txt", False),
        ("[!ab].txt", "c.txt", True),
        ("x[!a]y", "x/y", False),
        ("[a", "[a", True),
        ("*.py", ".py", True),
        ("**/*.pth", "a/evil\n.pth", True),
        ("tests/**", "tests/a\nb.py", True),
    ],
)
def test_a_pattern_means_what_it_says(pattern: str, path: str, meant: bool) -> None:
    """Whoever writes `tests/**` has to be able to tell what it covers, also for names chosen to slip past."""
    assert matches(pattern, path) is meant
    assert bool(first_match((pattern,), path)) is meant


@pytest.mark.parametrize("pattern", ["", "/", "!a", "a/../b", "./a", "a**", "a\\b"])
def test_a_pattern_that_can_t_be_read_is_refused(pattern: str) -> None:
    """A protection that silently covers nothing is none."""
    assert fault_of(pattern)


@given(
    st.lists(st.text("ab.[]!^-*?&~|\\", min_size=1, max_size=5), min_size=1, max_size=4).map("/".join), st.text("ab./-")
)
def test_any_text_can_be_tried_as_a_pattern(pattern: str, path: str) -> None:
    """A pattern comes from a file of somebody else: it never raises, and the quick way agrees with the slow one."""
    assert bool(first_match((pattern, "zzz"), path)) == matches(pattern, path)


@given(st.text("abc/", min_size=1).filter(lambda text: all(text.split("/"))))
def test_a_path_always_means_itself(path: str) -> None:
    """`--allow PATH` with a plain path allows that path and nothing else."""
    assert matches(path, path)
    assert not matches(path, path + "x")
