"""What a failed collection lacks, and the line that brings it."""

from __future__ import annotations

import pytest

from bailiwick.gate.detection.missing import missing_at_collection

INSTALL = ".venv/bin/python -m pip install"


@pytest.mark.parametrize(
    ("output", "name", "kind", "requirement"),
    [
        ("E   ModuleNotFoundError: No module named 'yaml'", "yaml", "module", "pyyaml"),
        ("E   ModuleNotFoundError: No module named 'google.protobuf'", "google.protobuf", "module", "protobuf"),
        ("E   fixture 'mocker' not found", "mocker", "fixture", "pytest-mock"),
        ("pytest: error: unrecognized arguments: --cov=a --cov-report=x", "--cov=a", "option", "pytest-cov"),
        ("'asyncio' not found in `markers` configuration option", "asyncio", "mark", "pytest-asyncio"),
        ("ERROR: Missing required plugins: pytest-xdist>=2", "pytest-xdist", "plugin", "pytest-xdist>=2"),
        ("ImportError: Error importing plugin \"xdist\": No module named 'xdist'", "xdist", "module", "pytest-xdist"),
        ("async def functions are not natively supported.", "asyncio", "plugin", "pytest-asyncio"),
    ],
)
def test_what_is_missing_is_named_with_the_line_that_brings_it(
    output: str, name: str, kind: str, requirement: str
) -> None:
    """A person should have to copy one line, and no agent should be paid for it."""
    found = missing_at_collection({}, output, ())
    assert found is not None
    assert (found.name, found.kind, found.requirement, found.known) == (name, kind, requirement, True)
    assert " ".join(found.command) == f"{INSTALL} {requirement}"
    assert f"[{', '.join(found.command)}]" in found.hint


@pytest.mark.parametrize("name", ["tests.util", "helpers", "shop.extra", "conftest"])
def test_a_file_of_the_project_is_never_asked_of_an_index(name: str) -> None:
    """A stranger may have taken the name there."""
    found = missing_at_collection({}, f"ModuleNotFoundError: No module named '{name}'", ("src/shop/__init__.py",))
    assert found is not None
    assert found.kind == "file"
    assert found.command == ()
    assert "not in the tree" in found.what


@pytest.mark.parametrize(
    "texts",
    [
        {"tox.ini": "[testenv]\ndeps =\n    strange>=2\n"},
        {"pyproject.toml": '[project.optional-dependencies]\nx = ["strange>=2"]\n'},
        {"requirements/extra.txt": "strange>=2\n"},
        {"setup.py": "setup(extras_require={'x': [\n    'strange>=2',\n]})\n"},
    ],
)
def test_a_name_that_the_project_declares_is_known(texts: dict[str, str]) -> None:
    """The project has said itself which distribution it means, and in which version."""
    found = missing_at_collection(texts, "ModuleNotFoundError: No module named 'strange'", ())
    assert found is not None
    assert (found.requirement, found.known) == ("strange>=2", True)


def test_an_unknown_name_is_only_told() -> None:
    """It is a guess: a person may run the line, we don't."""
    found = missing_at_collection({}, "ModuleNotFoundError: No module named 'strange'", ())
    assert found is not None
    assert not found.known
    assert found.command[-1] == "strange"


def test_a_failing_test_lacks_nothing() -> None:
    """Red is not missing."""
    assert missing_at_collection({}, "E   assert 1 == 2\nFAILED tests/test_a.py::test_a", ()) is None
