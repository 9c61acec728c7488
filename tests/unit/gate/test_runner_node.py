"""The check of node:test, with the real runner: honest changes are green, those that only look green are not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bailiwick.gate.model import CheckResult
from bailiwick.ids import Json
from tests.needs import need
from tests.unit.gate.pytest_stage import Files
from tests.unit.gate.runner_stage import RunnerStage, is_green

BASE: Files = {
    "package.json": '{"name": "shop", "scripts": {"test": "node --test"}}',
    "src/shop.js": "exports.discount = (price, percent) => price - (price * percent) / 100;\n",
    "test/shop.test.js": """
        const { discount } = require('../src/shop.js');
        const { test, describe, it } = require('node:test');
        const assert = require('node:assert');

        test('ten', () => assert.strictEqual(discount(200, 10), 180));
        describe('edges', () => {
          it('none', () => assert.deepEqual([discount(200, 0)], [200]));
          it('all', () => assert.ok(discount(200, 100) === 0));
        });
    """,
    "test/whole.test.mjs": """
        import { discount } from '../src/shop.js';
        import test from 'node:test';
        import { equal } from 'node:assert/strict';

        test('half', async (t) => {
          await t.test('of a hundred', () => equal(discount(100, 50), 50));
        });
    """,
}
WRONG = "\nexports.discount = () => 7;\n"
RIGHT = "\nexports.discount = (price, percent) => price - (price * percent) / 100;\n"
ALL = {
    "test/shop.test.js::ten",
    "test/shop.test.js::edges > none",
    "test/shop.test.js::edges > all",
    "test/whole.test.mjs::half",
    "test/whole.test.mjs::half > of a hundred",
}
_KNOWN: dict[str, Json] = {}
"""What is known of the base is learnt once, as in a real gate."""


@pytest.fixture(autouse=True)
def _node() -> None:
    need("node")


def _check(place: Path, change: Mapping[str, str | None], base: Files | None = None) -> CheckResult:
    there = BASE if base is None else base
    here = {path: text for path, text in {**there, **change}.items() if text is not None}
    place.mkdir(exist_ok=True)
    return RunnerStage(place, there, here, known=_KNOWN if base is None else None).check()


CHEATS: dict[str, tuple[str, str]] = {
    "the process ends when it is loaded": ("test-missing", "process.exit(0);" + WRONG),
    "the process ends in the middle": ("", "exports.discount = () => process.exit(0);"),
    "the process ends below Node": ("cut-short", "exports.discount = () => process.reallyExit(0);"),
    "the runner is killed": ("", "process.kill(process.ppid, 'SIGKILL');" + WRONG),
    "the exit code is exchanged": ("", "process.on('exit', () => { process.exitCode = 0; });" + WRONG),
    "our own ear is removed": ("cut-short", "process.removeAllListeners('exit');" + RIGHT),
    "assertions do nothing": (
        "runner-patched",
        "const a = require('node:assert'); for (const k of Object.keys(a)) a[k] = () => {};" + WRONG,
    ),
    "an assertion is exchanged for a moment": (
        "runner-patched",
        (
            "const a = require('node:assert'); const was = a.strictEqual;"
            "exports.discount = () => { a.strictEqual = () => { a.strictEqual = was; }; return 7; };"
        ),
    ),
    "an assertion is defined again": (
        "runner-patched",
        "Object.defineProperty(require('assert').strict, 'equal', { value: () => {} });"
        "require('module').syncBuiltinESMExports();" + WRONG,
    ),
    "tests are declared empty": (
        "runner-patched",
        "const t = require('node:test'); const r = t.test; t.test = (n) => r(n, () => {});" + WRONG,
    ),
    "tests are declared as skipped": (
        "",
        "const t = require('node:test'); t.test = t.test.skip; t.it = t.it.skip;" + WRONG,
    ),
    "tests are not declared": ("test-missing", "const t = require('node:test'); t.test = t.it = () => {};" + WRONG),
    "a result is printed": (
        "test-missing",
        "console.log('TAP version 13\\nok 1 - ten\\n1..1\\n# pass 1'); process.exit(0);" + WRONG,
    ),
    "outcomes are written into every open file": (
        "forged-record",
        "for (let i = 3; i < 24; i++) try { require('fs').writeSync(i, '{\"t\":\"test\"}\\n'); } catch {}" + RIGHT,
    ),
    "another file of tests is removed": (
        "test-missing",
        "const d = require('path').join(__dirname, '../test/');"
        "for (const f of require('fs').readdirSync(d)) require('fs').writeFileSync(d + f, '');" + WRONG,
    ),
    "promises never fail": (
        "runner-patched",
        "Promise.prototype.catch = function () { return this; };" + RIGHT,
    ),
    "objects are what they are said to be": ("", "Object.is = () => true;" + WRONG),
    "modules are given other contents": (
        "runner-patched",
        "const M = require('module'); const load = M._load; M._load = (n, ...r) => n.includes('assert') ?"
        " Object.assign(() => {}, { strictEqual() {}, deepEqual() {}, ok() {} }) : load(n, ...r);" + WRONG,
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_code_that_only_wants_to_look_green_is_found(name: str, tmp_path: Path) -> None:
    """Exit code 0 alone is not green, and neither is what the product prints."""
    code, product = CHEATS[name]
    result = _check(tmp_path, {"src/shop.js": product})
    assert result.outcome == "failed", result
    assert not code or code in {finding.code for finding in result.findings if finding.blocks}, result.findings


def test_a_skipped_a_todo_and_a_deleted_test_are_named(tmp_path: Path) -> None:
    """Where tests are not protected, what is left out is found by its id."""
    text = BASE["test/shop.test.js"].replace("test('ten',", "test.skip('ten',").replace("it('none',", "it.todo('none',")
    result = _check(tmp_path, {"test/shop.test.js": text, "test/whole.test.mjs": None})
    codes = sorted(finding.code for finding in result.findings if finding.blocks)
    assert codes == ["test-missing", "test-missing", "test-skipped", "test-skipped"]
    assert result.level == "ids"


def test_a_changed_script_does_not_change_what_is_run(tmp_path: Path) -> None:
    """What `npm test` means is said by the base."""
    result = _check(tmp_path, {"package.json": '{"scripts": {"test": "true"}}', "src/shop.js": WRONG})
    assert result.outcome == "failed"
    assert set(result.failing) == ALL


def test_a_new_file_of_tests_can_not_help_the_old_ones(tmp_path: Path) -> None:
    """Base ids run without it: here it would repair the product in front of the other files."""
    evil = "require('fs').writeFileSync(require('path').join(__dirname, '../src/shop.js'), `" + RIGHT + "`);"
    result = _check(tmp_path, {"src/shop.js": WRONG, "test/aaa.test.js": evil})
    assert result.outcome == "failed"
    assert set(result.failing) == ALL


def test_a_new_test_that_fails_is_red(tmp_path: Path) -> None:
    """New tests count too."""
    new = "require('node:test').test('new', () => { throw new Error('no'); });"
    result = _check(tmp_path, {"test/new.test.js": new})
    assert result.outcome == "failed"
    assert result.failing == ("test/new.test.js::new",)


HONEST: dict[str, dict[str, str | None]] = {
    "nothing but a text": {"README.md": "# Shop"},
    "a refactoring": {
        "src/shop.js": "const part = (p, q) => (p * q) / 100;\nexports.discount = (p, q) => p - part(p, q);"
    },
    "a new module": {
        "src/shop.js": "exports.discount = require('./parts.js').off;",
        "src/parts.js": "exports.off = (p, q) => p - (p * q) / 100;",
    },
    "a program that ends with a code": {"src/cli.js": "if (!process.argv[2]) process.exit(2);"},
    "a class": {
        "src/shop.js": "class Shop { discount(p, q) { return p - p * q / 100; } }\n"
        "exports.discount = new Shop().discount;"
    },
    "a test that is skipped from the start": {
        "test/later.test.js": "require('node:test').test.skip('later', () => {});"
    },
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_change_is_green(name: str, tmp_path: Path) -> None:
    """Every test of the base is there, and nothing is held against the change."""
    result = _check(tmp_path, HONEST[name])
    assert is_green(result), result
    assert dict(result.counts)["expected"] == len(ALL)


def test_a_new_test_of_a_new_function_is_the_proof(tmp_path: Path) -> None:
    """It fails on the base and passes here; one that passes there too is not proof."""
    change = {
        "src/shop.js": RIGHT + "exports.twice = (price) => 2 * price;",
        "test/twice.test.js": """
            const { test } = require('node:test');
            const assert = require('node:assert');
            const shop = require('../src/shop.js');
            test('twice', () => assert.equal(shop.twice(2), 4));
            test('ten again', () => assert.equal(shop.discount(200, 10), 180));
        """,
    }
    result = _check(tmp_path, change)
    assert is_green(result), result
    assert result.proof == ("test/twice.test.js::twice",)
    assert dict(result.counts)["new"] == 2


def test_a_test_that_was_red_is_healed(tmp_path: Path) -> None:
    """A fix of a red test is told as that, and a red test that stays red is not green."""
    red = {**BASE, "src/shop.js": WRONG}
    fixed = _check(tmp_path / "one", {"src/shop.js": RIGHT}, red)
    assert is_green(fixed)
    assert set(fixed.healed) == ALL
    assert not fixed.proof
    same = _check(tmp_path / "two", {"README.md": "x"}, red)
    assert same.outcome == "red_on_base"
    assert set(same.failing) == ALL


def test_steps_before_the_runner_belong_to_the_command(tmp_path: Path) -> None:
    """A script that builds first is followed: the build has to succeed, and what it makes is tested."""
    base = {
        **BASE,
        "package.json": '{"scripts": {"build": "cp src/shop.js built.js", "pretest": "npm run build", "test": '
        '"NODE_ENV=test node --test test/*.test.js && test -f built.js"}}',
        "test/shop.test.js": BASE["test/shop.test.js"].replace("../src/shop.js", "../built.js"),
    }
    assert is_green(_check(tmp_path / "one", {"README.md": "x"}, base))
    result = _check(tmp_path / "two", {"src/shop.js": None, "src/other.js": RIGHT}, base)
    assert result.outcome == "failed"
    assert "step-failed" in {finding.code for finding in result.findings if finding.blocks}


def test_a_package_that_is_nowhere_is_the_environment(tmp_path: Path) -> None:
    """A module that is missing on the base too is no red test, and the line that would bring it is said."""
    base = {**BASE, "test/shop.test.js": "require('left-pad');"}
    result = _check(tmp_path, {"README.md": "x"}, base)
    assert result.outcome == "environment"
    assert result.hint == "prepare: [[npm, install, --no-save, left-pad]]"


def test_a_runner_that_is_not_installed_is_the_environment(tmp_path: Path) -> None:
    """The lock file says which command brings it."""
    base = {"package.json": '{"scripts": {"test": "vitest run"}}', "package-lock.json": "{}"}
    result = RunnerStage(tmp_path, base, {**base, "a.js": ""}, kind="vitest").check("npm", "test")
    assert (result.outcome, result.hint) == ("environment", "prepare: [[npm, ci]]")


def test_a_command_that_starts_something_else_is_said(tmp_path: Path) -> None:
    """The gate does not guess."""
    base = {"package.json": '{"scripts": {"test": "node --test | tee out"}}'}
    result = RunnerStage(tmp_path, base, {**base, "a.js": ""}).check("npm", "test")
    assert result.outcome == "environment"
    assert [finding.code for finding in result.findings] == ["not-understood"]
    assert "kind: command" in result.hint
