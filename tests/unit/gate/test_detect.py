"""The gate of a repository that has none of its own."""

from __future__ import annotations

import pytest

from bailiwick.gate.detection import detect, wanted_files
from bailiwick.gate.spec import GateSpec


def _detected(files: dict[str, str], *tools: str) -> GateSpec:
    texts = {path: files[path].encode() for path in wanted_files(tuple(files))}
    return detect(tuple(files), texts, lambda name: name in tools)


@pytest.mark.parametrize(
    ("files", "prepare", "checks"),
    [
        (
            {"package.json": '{"scripts": {"test": "node --test", "lint": "eslint ."}}', "package-lock.json": ""},
            ["npm ci"],
            ["npm run lint", "npm test"],
        ),
        (
            {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}', "yarn.lock": ""},
            ["yarn install --frozen-lockfile"],
            [],
        ),
        ({"package.json": "not json", "pnpm-lock.yaml": ""}, ["pnpm install --frozen-lockfile"], []),
        ({"go.mod": "module x", "go.sum": "a v1 h1:x"}, ["go mod vendor"], ["go vet ./...", "go test ./..."]),
        ({"go.mod": "module x"}, [], ["go vet ./...", "go test ./..."]),
        ({"Cargo.toml": "", "Cargo.lock": ""}, ["cargo fetch --locked"], ["cargo test --offline"]),
        ({"Makefile": "all:\n\ntest: all\n\techo\n"}, [], ["make test"]),
        ({"Makefile": "test := 1\ncheck:\n\techo\n"}, [], ["make check"]),
        ({"README.md": ""}, [], []),
    ],
)
def test_a_project_gets_the_checks_that_people_of_its_kind_run(
    files: dict[str, str], prepare: list[str], checks: list[str]
) -> None:
    """Nobody should have to write a file before the first run shows anything."""
    spec = _detected(files)
    assert [" ".join(command) for command in spec.prepare] == prepare
    assert [" ".join(check.run) for check in spec.checks] == [*checks, ""]
    assert spec.checks[-1].kind == "secret-scan"


def test_two_languages_in_one_repository_keep_their_checks_apart() -> None:
    """Names of checks are keys in reports: two of one name would be one."""
    files = {"tests/test_a.py": "", "package.json": '{"scripts": {"test": "node --test"}}', "ruff.toml": ""}
    names = [check.name for check in _detected(files, "ruff", "pytest").checks]
    assert names == ["lint", "tests", "npm-tests", "secrets"]


def test_where_nothing_is_recognised_it_is_said() -> None:
    """A green gate that checked nothing must not look like one that did."""
    assert "no tests or linters" in _detected({"README.md": ""}).notes[0].what
