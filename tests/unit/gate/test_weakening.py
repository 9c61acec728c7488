"""What weakens the checks: found by reading both versions, listed with its place, blocking only in the clear cases."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from textwrap import dedent

import pytest

from bailiwick.gate.backends.weakening import MOST, WeakeningCheck, find_weakening
from bailiwick.gate.model import Finding
from bailiwick.gate.spec import CheckSpec
from bailiwick.git.objects import TreeChange
from tests.unit.gate.pytest_stage import PytestCheckSetup


def _find(path: str, old: str | None, new: str | None) -> list[Finding]:
    before = None if old is None else dedent(old).encode()
    after = None if new is None else dedent(new).encode()
    change = TreeChange(path, "A" if old is None else "D" if new is None else "M", "100644", "100644", 1, 1)
    return list(find_weakening([change], {path: before}.get, {path: after}.get))


def _codes(path: str, old: str | None, new: str | None) -> list[tuple[str, bool]]:
    return [(finding.code, finding.blocks) for finding in _find(path, old, new)]


TEST = """
    import pytest

    def test_a():
        assert add(1, 2) == 3
        assert add(2, 2) == 4

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_b(n):
        with pytest.raises(ValueError):
            add(n, None)

    class TestGroup:
        def test_c(self):
            self.assertAlmostEqual(add(0.1, 0.2), 0.3, places=7)
            assert add(0.1, 0.2) == pytest.approx(0.3, rel=1e-6)
"""

EDITS: dict[str, tuple[str, str, str, bool]] = {
    "deleted": ("def test_a", "def check_a", "test-deleted", True),
    "skipped": ("def test_a", "@pytest.mark.skip\n    def test_a", "test-skipped", True),
    "skipped on a condition": ("def test_a", "@pytest.mark.skipif(True)\n    def test_a", "test-skipped", True),
    "expected to fail": ("def test_a", "@pytest.mark.xfail(strict=False)\n    def test_a", "test-skipped", True),
    "skipped inside": ("assert add(1, 2)", "pytest.skip('x')\n        assert add(1, 2)", "test-skipped", True),
    "a class skipped": ("class TestGroup", "@pytest.mark.skip\n    class TestGroup", "test-skipped", True),
    "a module skipped": ("import pytest\n", "import pytest\n    pytestmark = pytest.mark.skip\n",
                         "test-skipped", True),
    "a module left out": ("import pytest\n", "import pytest\n    pytest.skip('', allow_module_level=True)\n",
                          "test-skipped", True),
    "a class left out": ("class TestGroup:", "class TestGroup:\n        __test__ = False", "test-skipped", True),
    "fewer cases": ("[1, 2, 3]", "[1, 2]", "cases-removed", True),
    "fewer assertions": ("assert add(2, 2) == 4", "add(2, 2)", "assert-removed", False),
    "a presence": ("add(1, 2) == 3", "add(1, 2) is not None", "assert-loosened", False),
    "a truth": ("add(1, 2) == 3", "add(1, 2)", "assert-loosened", False),
    "one of many": ("add(1, 2) == 3", "add(1, 2) in (2, 3)", "assert-loosened", False),
    "always true": ("add(1, 2) == 3", "add(1, 2) == 3 or True", "assert-loosened", False),
    "the same on both sides": ("add(1, 2) == 3", "add(1, 2) == add(1, 2)", "assert-loosened", False),
    "another value": ("add(1, 2) == 3", "add(1, 2) == 4", "assert-changed", False),
    "a wider tolerance": ("rel=1e-6", "rel=1", "assert-loosened", False),
    "fewer places": ("places=7", "places=0", "assert-loosened", False),
    "any error": ("raises(ValueError)", "raises(Exception)", "assert-loosened", False),
    "errors caught": ("assert add(1, 2) == 3",
                      "try:\n            assert add(1, 2) == 3\n        except Exception: pass", "broad-except", False),
    "no Python": ("def test_a", "def test_a((", "unreadable-test", False),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_a_softer_python_test_is_found(edit: str) -> None:
    """The id stays and the test is green; what it says is less."""
    old, new, code, blocks = EDITS[edit]
    assert TEST.count(old) == 1
    assert (code, blocks) in _codes("tests/test_a.py", TEST, TEST.replace(old, new))


HARMLESS = {
    "nothing": ("add(1, 2)", "add(1, 2)"),
    "more assertions": ("assert add(2, 2) == 4", "assert add(2, 2) == 4\n        assert add(3, 3) == 6"),
    "more cases": ("[1, 2, 3]", "[1, 2, 3, 4]"),
    "more tests": ("class TestGroup:", "def test_new(): assert add(0, 0) == 0\n\n    class TestGroup:"),
    "a tighter tolerance": ("places=7", "places=7"),
    "a comment": ("import pytest\n", "import pytest  # for raises\n"),
}


@pytest.mark.parametrize("edit", HARMLESS)
def test_a_test_that_says_as_much_or_more_is_no_finding(edit: str) -> None:
    """A list that cries wolf is not read."""
    assert _codes("tests/test_a.py", TEST, TEST.replace(*HARMLESS[edit])) == []


def test_a_test_with_another_name_is_not_a_deleted_one() -> None:
    """The same body under another name is listed; whether its id counts is for the run to say."""
    assert _codes("tests/test_a.py", TEST, TEST.replace("test_a", "test_sum")) == [("test-renamed", False)]


def test_a_deleted_test_file_blocks_and_a_deleted_module_does_not() -> None:
    """What is no test may go."""
    assert _codes("tests/test_a.py", TEST, None) == [("test-file-deleted", True)]
    assert _codes("src/a.py", "x = 1", None) == []


def test_what_decides_which_tests_count_blocks() -> None:
    """A hook in a conftest.py can leave out anything."""
    hook = "collect_ignore = ['test_a.py']\ndef pytest_collection_modifyitems(items): items.clear()\n"
    assert _codes("conftest.py", "", hook) == [("tests-filtered", True), ("tests-filtered", True)]
    assert _codes("conftest.py", hook, hook + "x = 1\n") == []


MARKS = {
    "a.py": ["x = 1  # noqa", "x = f()  # type: ignore[arg-type]", "f()  # nosec", "if x:  # pragma: no cover",
             "# pylint: disable=all", "# ruff: noqa", "# mypy: ignore-errors", "x = f()  # pyright: ignore"],
    "a.ts": ["// eslint-disable-next-line", "// @ts-ignore", "/* istanbul ignore next */", "// biome-ignore lint: x"],
    "a.rs": ["#[allow(dead_code)]", "#![allow(warnings)]"],
    "a.go": ["x := f() //nolint:errcheck"],
    "ci.sh": ["pytest || true", "ruff check --exit-zero ."],
    ".github/workflows/ci.yml": ["    continue-on-error: true"],
    "Makefile": ["\t-pytest"],
}  # fmt: skip


@pytest.mark.parametrize(("path", "line"), [(path, line) for path, lines in MARKS.items() for line in lines])
def test_a_new_mark_that_silences_a_tool_is_listed(path: str, line: str) -> None:
    """With its line, so that it is found at once; it never blocks."""
    found = _find(path, "a\n", f"a\n{line}\n    pass\n")
    assert [(f.line, f.blocks) for f in found] == [(2, False)], found


def test_a_mark_that_was_there_moved_or_is_only_quoted_is_none() -> None:
    """Code around a mark may change; a text about marks is no mark."""
    assert _codes("a.py", "x = 1  # noqa\n", "y = 2\nx = 3  # noqa\n") == []
    assert _codes("a.py", "x = 1\n", "x = '# noqa'\ny = '''\n# type: ignore\n'''\n") == []


SETTINGS: dict[str, tuple[str, str, str]] = {
    "coverage sinks": ("pyproject.toml", "[tool.coverage.report]\nfail_under = 90",
                       "[tool.coverage.report]\nfail_under = 50"),
    "coverage goes": ("pyproject.toml", "[tool.coverage.report]\nfail_under = 90", "[tool.coverage.report]"),
    "coverage leaves out": ("pyproject.toml", "[tool.coverage.run]\nomit = []", "[tool.coverage.run]\nomit = ['a/*']"),
    "ruff ignores": ("pyproject.toml", "[tool.ruff.lint]\nignore = ['A']", "[tool.ruff.lint]\nignore = ['A', 'B']"),
    "ruff selects less": ("ruff.toml", "lint.select = ['ALL']", "lint.select = ['E']"),
    "ruff ignores in files": ("ruff.toml", "", "[lint.per-file-ignores]\n'a.py' = ['S']"),
    "mypy is not strict": ("pyproject.toml", "[tool.mypy]\nstrict = true", "[tool.mypy]\nstrict = false"),
    "mypy ignores": ("pyproject.toml", "", "[[tool.mypy.overrides]]\nmodule = 'a.*'\nignore_errors = true"),
    "mypy.ini": ("mypy.ini", "[mypy]\ndisallow_untyped_defs = True", "[mypy]\ndisallow_untyped_defs = False"),
    "mypy.ini for a module": ("setup.cfg", "[mypy]\nstrict=True",
                              "[mypy]\nstrict=True\n[mypy-a.*]\nignore_errors=True"),
    "pytest leaves out": ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-q'",
                          "[tool.pytest.ini_options]\naddopts = '-q --deselect a::b'"),
    "pytest is not strict": ("pytest.ini", "[pytest]\naddopts = --strict-markers", "[pytest]\naddopts ="),
    "warnings are no errors": ("pyproject.toml", "[tool.pytest.ini_options]\nfilterwarnings = ['error']",
                               "[tool.pytest.ini_options]\nfilterwarnings = []"),
    "fewer folders": ("tox.ini", "[pytest]\ntestpaths = a b", "[pytest]\ntestpaths = a"),
    "flake8": ("setup.cfg", "[flake8]\nignore = E1", "[flake8]\nignore = E1,E2"),
    "coveragerc": (".coveragerc", "[report]\nfail_under = 90", "[report]\nfail_under = 10"),
    "TypeScript is not strict": ("tsconfig.json", '{"compilerOptions": {"strict": true}} // c',
                                 '{"compilerOptions": {"strict": false,}}'),
    "another test command": ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "echo ok"}}'),
    "failures ignored": ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "jest || true"}}'),
    "a threshold sinks": ("package.json", '{"jest": {"coverageThreshold": {"global": {"lines": 90}}}}',
                          '{"jest": {"coverageThreshold": {"global": {"lines": 10}}}}'),
    "a rule is off": (".eslintrc.json", '{"rules": {"eqeqeq": "error"}}', '{"rules": {"eqeqeq": ["off"]}}'),
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS)
def test_a_relaxed_setting_is_listed(case: str) -> None:
    """The tool still runs and still says that all is well."""
    path, old, new = SETTINGS[case]
    assert ("setting-relaxed", False) in _codes(path, old, new)
    if case != "another test command":
        assert _codes(path, new, old) == []


@pytest.mark.parametrize(
    ("path", "old", "new", "codes"),
    [
        (
            "a.test.ts",
            "it('a', () => { expect(f()).toBe(1) })\nit('b', () => {})",
            "it('a', () => { expect(f()).toBe(1) })",
            ["test-deleted"],
        ),
        ("a.test.ts", "it('a', () => {})", "it.skip('a', () => {})", ["test-skipped"]),
        ("a.test.ts", "it('a', f)\nit('b', f)", "it.only('a', f)\nit('b', f)", ["test-skipped"]),
        (
            "a.test.ts",
            "it('a', () => { expect(f()).toBe(1) })",
            "it('a', () => { expect(f()).toBeDefined() })",
            ["assert-loosened"],
        ),
        (
            "a.spec.js",
            "it('a', () => { expect(1).toBe(1) })",
            "it('a', () => { /* expect(1).toBe(1) */ })",
            ["assert-removed"],
        ),
        ("a.test.ts", "it('a', () => {})", "it('renamed', () => {})", ["test-renamed"]),
        ("a.test.ts", "it('a', () => {})", "// it('a', () => {})", ["test-deleted"]),
        (
            "a_test.go",
            "func TestA(t *testing.T) { t.Fatal(1) }",
            "func TestA(t *testing.T) { t.Skip(); t.Fatal(1) }",
            ["test-skipped"],
        ),
        (
            "a_test.go",
            "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}",
            "func TestA(t *testing.T) {}",
            ["test-deleted"],
        ),
        (
            "src/a.rs",
            "#[test]\nfn a() { assert_eq!(1, 1); }",
            "#[test]\n#[ignore]\nfn a() { assert_eq!(1, 1); }",
            ["test-skipped"],
        ),
        ("a.test.ts", "it('a', () => {})", "it('a', () => {})\nit('b', () => {})", []),
    ],
)
def test_tests_in_other_languages_are_read_by_pattern(path: str, old: str, new: str, codes: list[str]) -> None:
    """Less sure than a syntax tree, and better than nothing."""
    assert [code for code, _ in _codes(path, old, new)] == codes


def test_what_can_t_be_read_breaks_nothing() -> None:
    """Bytes, broken files and deep nesting are data like everything else."""
    deep = "def test_a():\n    assert " + "not " * 3000 + "1\n"
    for path in ("tests/test_a.py", "pyproject.toml", "package.json", "setup.cfg", "tsconfig.json", "a.test.ts"):
        for text in ("\0", "[[[", "{" * 2000, deep, "\ud7ff" * 10):
            _find(path, "x = 1\n", text)
            _find(path, text, "x = 1\n")
    raw = find_weakening([TreeChange("a.py", "M", "100644", "100644", 1, 1)], lambda _: b"\xff", lambda _: b"\0\xff")
    assert raw == ()


@pytest.mark.parametrize(
    "text",
    [
        "\\'" * 40_000,
        "/*" * 40_000,
        "it('" * 20_000,
        "#[test]\n" * 10_000,
        "it." * 30_000,
        "\n" * 80_000,
        "# noqa\n" * 10_000,
        "((" * 40_000,
    ],
)
def test_hostile_text_is_read_in_time(text: str) -> None:
    """Reading must not take longer than the square of anything an agent can write."""
    began = time.process_time()
    for path in ("a.test.ts", "src/a.rs", "tests/test_a.py", "package.json", "setup.cfg"):
        _find(path, text, text[:-3])
    assert time.process_time() - began < 20


def test_findings_are_bounded_and_those_that_block_come_first() -> None:
    """A list of thousands is read by nobody."""
    many = "".join(f"x = {n}  # noqa\n" for n in range(MOST + 10))
    changes = [TreeChange(p, "M", "100644", "100644", 1, 1) for p in ("a.py", "tests/test_z.py")]
    old = {"a.py": b"", "tests/test_z.py": b"def test_z(): assert 1\n"}
    new = {"a.py": many.encode(), "tests/test_z.py": b""}
    found = find_weakening(changes, old.get, new.get)
    assert len(found) == MOST + 1
    assert (found[0].code, found[-1].code) == ("test-deleted", "more")


def test_as_a_check_it_is_red_only_for_what_nobody_allowed(tmp_path: Path) -> None:
    """The same findings, with the verdict of a check."""
    base, new = (
        {"tests/test_a.py": TEST},
        {"tests/test_a.py": TEST.replace("def test_a", "def a"), "b.py": "x = 1  # noqa\n"},
    )
    spec = CheckSpec("weakening", "weakening")
    for allowed, outcome in (((), "failed"), (("tests/test_a.py",), "passed")):
        result = asyncio.run(
            WeakeningCheck().run(spec, PytestCheckSetup(tmp_path, base, new, allowed=allowed).context())
        )
        assert (result.outcome, len(result.findings)) == (outcome, 2)
        assert json.dumps(result.to_json())


PIPELINE = """
    test:
      script:
        - pip install pytest ruff
        - pytest -q
        - ruff check .
        - npm test
"""


@pytest.mark.parametrize("gone", ["        - pytest -q\n", "        - ruff check .\n", "        - npm test\n"])
@pytest.mark.parametrize("path", [".gitlab-ci.yml", ".github/workflows/ci.yml", "scripts/check.sh", "Makefile"])
def test_a_tool_that_a_pipeline_no_longer_starts_is_told(path: str, gone: str) -> None:
    """What isn't run can't be red."""
    assert _codes(path, PIPELINE, PIPELINE.replace(gone, "")) == [("check-removed", False)]
    assert _codes(path, PIPELINE.replace(gone, ""), PIPELINE) == []
    assert _codes(path, PIPELINE, PIPELINE.replace("pytest -q", "pytest -q -n 2")) == []
    assert _codes(path, PIPELINE, PIPELINE.replace("pip install pytest ruff", "pip install .")) == []


SCRIPT = """
    import subprocess
    subprocess.run(["ruff", "check", "."], check=True)
"""


def test_a_script_that_goes_on_is_told() -> None:
    """A tool that fails has to end it."""
    path = "scripts/ci.py"
    assert _codes(path, SCRIPT, SCRIPT.replace("True", "False")) == [("failure-ignored", False)]
    assert _codes(path, SCRIPT, SCRIPT.replace(", check=True", "")) == [("failure-ignored", False)]
    assert _codes(path, SCRIPT, f"{SCRIPT}    print('done')\n") == []
    assert _codes(path, SCRIPT.replace("ruff", "ls"), SCRIPT.replace("ruff", "ls").replace("True", "False")) == []


@pytest.mark.parametrize("line", ["@no_type_check", "@typing.no_type_check", "x = cast(Any, 1)", "x = cast('Any', 1)"])
def test_types_that_are_switched_off_are_told(line: str) -> None:
    """A checker that sees nothing finds nothing."""
    body = "def f(x: int) -> int:\n    return x\n"
    assert _codes("shop/a.py", body, f"{line}\n{body}") == [("silenced", False)]
    assert _codes("shop/a.py", f"{line}\n{body}", f"{line}\n{body}") == []
