"""Which runner is behind the tests of a Node, Go or Rust repository, and what prepares it."""

from __future__ import annotations

import json

import pytest

from bailiwick.gate.detection import detect, wanted_files
from bailiwick.ids import Json


def _tests(files: dict[str, Json], *tools: str) -> tuple[list[str], list[tuple[str, str]]]:
    texts = {path: (data if isinstance(data, str) else json.dumps(data)).encode() for path, data in files.items()}
    paths = tuple(texts)
    spec = detect(paths, {path: texts[path] for path in wanted_files(paths)}, lambda name: name in tools)
    checks = [(check.kind, " ".join(check.run)) for check in spec.checks if check.name == "tests"]
    return [" ".join(command) for command in spec.prepare], checks


@pytest.mark.parametrize(
    ("files", "prepare", "checks"),
    [
        ({"package.json": {"scripts": {"test": "node --test"}}}, [], [("node-test", "npm test")]),
        (
            {"package.json": {"scripts": {"test": "eslint . && vitest"}, "devDependencies": {"vitest": "3"}}},
            ["npm install --no-package-lock --no-audit --no-fund"],
            [("vitest", "npm test")],
        ),
        (
            {"package.json": {"scripts": {"test": "turbo test"}}, "package-lock.json": {}},
            ["npm ci"],
            [("command", "npm test")],
        ),
        (
            {"package.json": {"devDependencies": {"jest": "30"}}, "package-lock.json": {}},
            ["npm ci"],
            [("jest", "npx jest")],
        ),
        (
            {
                "package.json": {"scripts": {"test": 'echo "no test specified"'}, "devDependencies": {"mocha": "11"}},
                "yarn.lock": "",
                ".yarnrc.yml": "",
            },
            ["yarn install --immutable"],
            [("mocha", "npx mocha")],
        ),
        ({"package.json": {}, "a.test.mjs": ""}, [], [("node-test", "node --test")]),
        ({"package.json": {"dependencies": [], "scripts": 3}, "src/a.js": ""}, [], []),
        ({"go.mod": "module x"}, [], [("go-test", "go test ./...")]),
        ({"Cargo.toml": ""}, [], [("cargo-test", "cargo test --offline")]),
        ({"Makefile": "test:\n\tgo test\n"}, [], [("command", "make test")]),
    ],
)
def test_the_runner_is_named_where_it_is_known(
    files: dict[str, Json], prepare: list[str], checks: list[tuple[str, str]]
) -> None:
    """A command that is not understood stays one whose exit code counts."""
    assert _tests(files) == (prepare, checks)


def test_a_manager_that_comes_with_node_is_started_through_it() -> None:
    """Where pnpm itself is not installed, corepack brings it."""
    files: dict[str, Json] = {"package.json": {}, "pnpm-lock.yaml": ""}
    assert _tests(files, "corepack")[0] == ["corepack pnpm install --frozen-lockfile"]
    assert _tests(files, "corepack", "pnpm")[0] == ["pnpm install --frozen-lockfile"]
