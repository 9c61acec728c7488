"""The checks of vitest, jest and mocha, with the real runners from the registry: honest changes and cheats."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from bailiwick.gate.model import CheckResult
from bailiwick.ids import Json
from tests.needs import need
from tests.unit.gate.pytest_stage import Files
from tests.unit.gate.runner_stage import RunnerStage, is_green

pytestmark = pytest.mark.nightly
PACKAGES = ("vitest@3", "jest@30", "mocha@11", "chai@5")
KINDS = ("vitest", "jest", "mocha")
_SHOP = "const discount = (price, percent) => price - (price * percent) / 100;\n"
_CHECKED = {
    "vitest": "import { test, it, describe, expect } from 'vitest';\nimport { discount } from '../src/shop.js';\n",
    "jest": "const { discount } = require('../src/shop.js');\n",
    "mocha": "const { discount } = require('../src/shop.js');\nconst { expect } = require('chai');\nconst test = it;\n",
}
_EQUAL = {"vitest": "toBe", "jest": "toBe", "mocha": "to.equal"}
_KNOWN: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
IDS = ("test/shop.test.js::ten", "test/shop.test.js::edges > none", "test/shop.test.js::edges > later")


def product(kind: str, text: str) -> str:
    """A product file of a project: modules for vitest, CommonJS for the others."""
    return text + ("export { discount };\n" if kind == "vitest" else "module.exports = { discount };\n")


def base_of(kind: str) -> Files:
    """A small project."""
    equal = _EQUAL[kind]
    return {
        "package.json": '{"name": "shop", "type": "%s"}' % ("module" if kind == "vitest" else "commonjs"),
        "src/shop.js": product(kind, _SHOP),
        "test/shop.test.js": _CHECKED[kind]
        + f"test('ten', () => {{ expect(discount(200, 10)).{equal}(180); }});\n"
        + "describe('edges', () => {\n"
        + f"  it('none', () => {{ expect(discount(200, 0)).{equal}(200); }});\n"
        + "  it.skip('later', () => {});\n});\n",
    }


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node_modules with the three runners."""
    need("node")
    need("npm")
    place = tmp_path_factory.mktemp("npm")
    (place / "package.json").write_text("{}")
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", *PACKAGES], cwd=place, check=True, capture_output=True)
    return place / "node_modules"


def _check(kind: str, place: Path, modules: Path, change: Mapping[str, str | None]) -> CheckResult:
    base = base_of(kind)
    here = {path: text for path, text in {**base, **change}.items() if text is not None}
    return RunnerStage(place, base, here, kind=kind, known=_KNOWN[kind], modules=modules).check()


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_change_is_green(kind: str, tmp_path: Path, modules: Path) -> None:
    """Every test of the base is there."""
    text = "const part = (p, q) => (p * q) / 100;\nconst discount = (p, q) => p - part(p, q);\n"
    result = _check(kind, tmp_path, modules, {"src/shop.js": product(kind, text)})
    assert is_green(result), result
    assert dict(result.counts) == {"passed": 2, "skipped": 1, "expected": 3}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_test_is_the_proof(kind: str, tmp_path: Path, modules: Path) -> None:
    """It fails on the base and passes here."""
    text = "const discount = (p, q) => Math.max(0, p - (p * q) / 100);\n"
    new = _CHECKED[kind] + f"test('never below nothing', () => {{ expect(discount(200, 200)).{_EQUAL[kind]}(0); }});\n"
    result = _check(kind, tmp_path, modules, {"src/shop.js": product(kind, text), "test/below.test.js": new})
    assert is_green(result), result
    assert result.proof == ("test/below.test.js::never below nothing",)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_is_red_by_its_ids(kind: str, tmp_path: Path, modules: Path) -> None:
    """Failing tests are named."""
    result = _check(kind, tmp_path, modules, {"src/shop.js": product(kind, "const discount = () => 7;\n")})
    assert result.outcome == "failed"
    assert set(result.failing) == set(IDS[:2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_can_not_be_loaded_is_red(kind: str, tmp_path: Path, modules: Path) -> None:
    """Tests without an outcome are no green ones."""
    result = _check(kind, tmp_path, modules, {"src/shop.js": "this is no JavaScript"})
    assert result.outcome == "failed"


_W = "const discount = () => 7;\n"
CHEATS: dict[str, tuple[str, str, str]] = {
    "vitest: the process ends": ("vitest", "", "const discount = () => process.exit(0);\n"),
    "vitest: a matcher is exchanged": (
        "vitest",
        "",
        "import { expect } from 'vitest';\nexpect.extend({ toBe: () => ({ pass: true }) });\n" + _W,
    ),
    "vitest: chai is exchanged": (
        "vitest",
        "",
        "import { chai } from 'vitest';\nchai.Assertion.prototype.assert = function () {};\n"
        "for (const k of ['toBe', 'toEqual']) chai.Assertion.prototype[k] = function () {};\n" + _W,
    ),
    "vitest: the state of expect is exchanged": (
        "vitest",
        "",
        "globalThis[Symbol.for('expect-global')]?.extend?.({ toBe: () => ({ pass: true }) });\n" + _W,
    ),
    "vitest: an object that matches everything": (
        "vitest",
        "",
        "const discount = () => ({ asymmetricMatch: () => true });\n",
    ),
    "jest: the process ends": ("jest", "", "const discount = () => process.exit(0);\n"),
    "jest: a matcher is exchanged": (
        "jest",
        "runner-patched",
        "global.expect?.extend({ toBe: () => ({ pass: true, message: () => '' }) });\n" + _W,
    ),
    "jest: expect is exchanged": (
        "jest",
        "runner-patched",
        "global.expect = () => new Proxy(() => {}, { get: () => () => {} });\n" + _W,
    ),
    "jest: tests are declared as skipped": (
        "jest",
        "test-skipped",
        "const t = global.it; global.test = global.it = Object.assign((...a) => t.skip(...a), t);\n" + _W,
    ),
    "jest: tests are declared empty": (
        "jest",
        "runner-patched",
        "const t = global.test; global.test = global.it = Object.assign((n) => t(n, () => {}), t);\n" + _W,
    ),
    "jest: an object that matches everything": (
        "jest",
        "conduct",
        "const discount = () => ({ asymmetricMatch: () => true });\n",
    ),
    "mocha: the process ends": ("mocha", "", "const discount = () => process.exit(0);\n"),
    "mocha: the process ends when it is loaded": ("mocha", "no-records", "process.exit(0);\n" + _W),
    "mocha: a failure is told as a pass": (
        "mocha",
        "runner-patched",
        "require('mocha').Runner.prototype.fail = function (t) { t.state = 'passed'; this.emit('pass', t); };\n" + _W,
    ),
    "mocha: chai does nothing": (
        "mocha",
        "runner-patched",
        "require('chai').Assertion.prototype.assert = () => {};\n" + _W,
    ),
    "mocha: tests are not declared": (
        "mocha",
        "test-missing",
        "global.describe = () => {}; global.it = Object.assign(() => {}, { skip() {} });\n" + _W,
    ),
    "mocha: a result is printed": (
        "mocha",
        "no-records",
        "console.log('  2 passing (1ms)'); process.exit(0);\n" + _W,
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_code_that_only_wants_to_look_green_is_found(name: str, tmp_path: Path, modules: Path) -> None:
    """Exit code 0 alone is not green, and neither is what the product prints."""
    kind, code, text = CHEATS[name]
    result = _check(kind, tmp_path, modules, {"src/shop.js": product(kind, text)})
    assert not is_green(result), result
    found = {finding.code for finding in result.findings if finding.blocks or finding.parks}
    assert not code or code in found, (found, result.failing)


@pytest.mark.parametrize("kind", KINDS)
def test_only_and_skip_leave_no_test_of_the_base_out(kind: str, tmp_path: Path, modules: Path) -> None:
    """Where tests are not protected, what is left out is found by its id."""
    text = base_of(kind)["test/shop.test.js"].replace("it('none'", "it.only('none'")
    result = _check(kind, tmp_path, modules, {"test/shop.test.js": text})
    assert result.outcome == "failed"
    named = {finding.code for finding in result.findings if finding.blocks and IDS[0] in finding.what}
    assert named & {"test-missing", "test-skipped"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_file_of_tests_can_not_help_the_old_ones(kind: str, tmp_path: Path, modules: Path) -> None:
    """Base ids run without it: here it would end the run, or leave only itself."""
    evil = _CHECKED[kind] + "describe.only('own', () => { it('own', () => {}); });\nglobalThis.expect = () => ({});\n"
    change = {"src/shop.js": product(kind, _W), "test/aaa.test.js": evil}
    result = _check(kind, tmp_path, modules, change)
    assert result.outcome == "failed"
    assert set(result.failing) == set(IDS[:2])


def test_settings_of_the_runner_can_not_hide_tests(tmp_path: Path, modules: Path) -> None:
    """A new jest.config.js is taken out by the gate; even where it is not, what it hides is missing."""
    config = "module.exports = { testPathIgnorePatterns: ['shop'], passWithNoTests: true };"
    result = _check("jest", tmp_path, modules, {"jest.config.js": config, "src/shop.js": product("jest", _W)})
    assert result.outcome == "failed"
    assert {finding.code for finding in result.findings if finding.blocks} & {"test-missing", "no-records"}
