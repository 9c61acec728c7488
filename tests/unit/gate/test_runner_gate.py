"""The whole gate with tests of another language: in the sandbox, with protected paths, from detection to verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.gate.detection import detect, wanted_files
from bailiwick.gate.spec import GateSpec
from tests.needs import need
from tests.unit.gate.gate_stage import GateSetup, make_stage, real_sandbox

FILES = {
    "package.json": '{"name": "shop", "scripts": {"test": "node --test"}}\n',
    "src/shop.js": "exports.discount = (price, percent) => price - (price * percent) / 100;\n",
    "test/shop.test.js": (
        "const { test } = require('node:test');\nconst assert = require('node:assert');\n"
        "const { discount } = require('../src/shop.js');\n"
        "test('ten', () => assert.equal(discount(200, 10), 180));\n"
    ),
}


@pytest.fixture
def stage(tmp_path: Path) -> GateSetup:
    """A repository with tests for Node, in the sandbox of this machine."""
    need("node")
    made = make_stage(tmp_path, real_sandbox())
    made.scene.commit({**FILES})
    return made


def _spec() -> GateSpec:
    texts = {path: text.encode() for path, text in FILES.items()}
    return detect(tuple(texts), {path: texts[path] for path in wanted_files(tuple(texts))}, lambda _: False)


def test_a_detected_gate_hears_every_test_by_its_id(stage: GateSetup) -> None:
    """A fix with a test of its own is green, and the test is its proof."""
    fixed = FILES["src/shop.js"].replace("price - (price", "price < 0 ? 0 : price - (price")
    new = FILES["test/shop.test.js"].replace("'ten'", "'below'").replace("200, 10), 180", "-1, 10), 0")
    report = stage.check({"src/shop.js": fixed, "test/below.test.js": new}, _spec())
    assert report.verdict == "green", report.checks
    assert (report.checks[0].kind, report.checks[0].level) == ("node-test", "ids")
    assert report.proof == ("test/below.test.js::below",)


def test_a_change_that_ends_the_run_is_red_with_the_tests_it_hides(stage: GateSetup) -> None:
    """Its change to the script and to the old test is reverted before anything runs."""
    cheat = {
        "src/shop.js": "process.exit(0);\n",
        "package.json": '{"name": "shop", "scripts": {"test": "true"}}\n',
        "test/shop.test.js": "",
    }
    report = stage.check(dict(cheat), _spec())
    assert report.verdict == "red"
    assert {part.path for part in report.taken} == {"package.json", "test/shop.test.js"}
    found = [finding for finding in report.checks[0].findings if finding.blocks]
    assert [finding.code for finding in found] == ["test-missing"]
    assert "test/shop.test.js::ten" in found[0].what
