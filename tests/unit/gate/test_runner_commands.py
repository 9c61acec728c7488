"""What a command of a JavaScript project means, followed through its scripts to the runner."""

from __future__ import annotations

import pytest

from bailiwick.gate.runner_commands import kept_args, node_line, read_scripts, read_steps, runner_of


@pytest.mark.parametrize(
    ("run", "scripts", "runner", "texts"),
    [
        ("npm test", {"test": "node --test"}, "node-test", ["node --test"]),
        ("npm test", {"test": "vitest"}, "vitest", ["vitest"]),
        ("npm run unit", {"unit": "jest --coverage"}, "jest", ["jest --coverage"]),
        ("npx vitest run", {}, "vitest", ["vitest run"]),
        ("npx --yes mocha test/*.js", {}, "mocha", ["mocha 'test/*.js'"]),
        ("pnpm test", {"test": "mocha"}, "mocha", ["mocha"]),
        ("yarn unit", {"unit": "yarn run inner", "inner": "jest"}, "jest", ["jest"]),
        (
            "npm test",
            {"test": "npm run lint && tsc -p . && mocha test/*.js", "lint": "eslint ."},
            "mocha",
            ["eslint .", "tsc -p .", "mocha test/*.js"],
        ),
        ("npm test", {"pretest": "npm run b", "b": "make", "test": "jest"}, "jest", ["make", "jest"]),
        ("npm test", {"test": "NODE_ENV=test cross-env A=1 jest"}, "jest", ["NODE_ENV=test A=1 jest"]),
        ("npm test", {"test": "c8 --all node --test"}, "node-test", ["node --test"]),
        ("npm test", {"test": "nyc mocha"}, "mocha", ["mocha"]),
        ("npm test -- --bail", {"test": "jest"}, "jest", ["jest --bail"]),
        ("npm test", {"test": "node test/all.test.js"}, "node-test", ["node test/all.test.js"]),
        (
            "npm test",
            {"test": "node --experimental-vm-modules node_modules/jest/bin/jest.js"},
            "jest",
            ["node --experimental-vm-modules node_modules/jest/bin/jest.js"],
        ),
        ("npm test", {"test": "jest | tee out"}, "", ["jest | tee out"]),
        ("npm test", {"test": "jest || true"}, "", ["jest || true"]),
        ("npm test", {"test": "mocha && jest"}, "", ["mocha", "jest"]),
        ("npm test", {"test": "node build.js"}, "", ["node build.js"]),
        ("npm test", {"test": "echo 'unclosed"}, "", ["echo 'unclosed"]),
        ("npm test --workspaces", {"test": "jest"}, "", ["npm test --workspaces"]),
        ("npm test", {}, "", ["npm test"]),
    ],
)
def test_a_command_is_followed_to_its_runner(run: str, scripts: dict[str, str], runner: str, texts: list[str]) -> None:
    """Other steps stay what they are; what only a shell understands is given to one, and is no runner."""
    steps = read_steps(run.split(), scripts)
    assert [step.text for step in steps] == texts
    assert runner_of(steps) == runner


def test_scripts_that_call_each_other_end() -> None:
    """A circle is no reason to hang."""
    assert runner_of(read_steps(("npm", "test"), {"test": "npm run a", "a": "npm test"})) == ""


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"scripts": []}', b"[" * 100_000])
def test_a_manifest_that_can_not_be_read_has_no_scripts(data: bytes) -> None:
    """Whatever is in it."""
    assert read_scripts(data) == {}


def test_what_says_how_to_report_is_ours() -> None:
    """A reporter of the project would take the place of the one that tells outcomes."""
    assert kept_args("jest", ["--reporters=x", "--reporters", "y", "-i", "--watch"]) == ["-i"]
    assert kept_args("mocha", ["-R", "dot", "test/a.js", "--reporter=min"]) == ["test/a.js"]
    assert kept_args("node-test", ["--test-reporter", "tap", "--test"]) == ["--test"]


@pytest.mark.parametrize(
    ("script", "only", "line"),
    [
        (
            "node --test",
            ("test/a b.test.js",),
            (
                "node --require=/r/start.cjs --test --test-reporter=spec --test-reporter-destination=stdout "
                "--test-reporter=/r/node_test.cjs --test-reporter-destination=/dev/null 'test/a b.test.js'"
            ),
        ),
        (
            "A=1 vitest",
            ("a.test.ts",),
            "A=1 node --require=/r/start.cjs bin.js --run --reporter=default --reporter=/r/vitest.cjs a.test.ts",
        ),
        (
            "jest -i",
            ("a.test.js",),
            (
                "node --require=/r/start.cjs bin.js -i --ci --reporters=default --reporters=/r/jest.cjs "
                "--testRunner=/r/jest_runner.cjs --runTestsByPath a.test.js"
            ),
        ),
        ("mocha 'test/**/*.js'", (), "node --require=/r/start.cjs bin.js 'test/**/*.js' --reporter /r/mocha.cjs"),
    ],
)
def test_the_runner_gets_our_reporter(script: str, only: tuple[str, ...], line: str) -> None:
    """The arguments of the project stay, quoted as it wrote them."""
    (step,) = read_steps(("npm", "test"), {"test": script})
    assert node_line(step, "bin.js", "/r", only) == f"exec env {line}"
