"""The checks of `cargo test` and `go test`, with the real tools: honest changes are green, cheats are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.gate.model import CheckResult
from bailiwick.ids import Json
from tests.needs import program
from tests.unit.gate.pytest_stage import Files
from tests.unit.gate.runner_stage import RunnerStage, is_green

RUST: Files = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """
        /// ```
        /// assert_eq!(shop::discount(200, 50), 100);
        /// ```
        pub fn discount(price: i64, percent: i64) -> i64 { price - price * percent / 100 }

        #[cfg(test)]
        mod tests {
            #[test]
            fn ten() { assert_eq!(super::discount(200, 10), 180) }
            #[test]
            #[ignore = "slow"]
            fn slow() {}
        }
    """,
    "tests/edges.rs": "#[test]\nfn none() { assert_eq!(shop::discount(200, 0), 200) }\n",
}
RUST_IDS = {
    "src/lib.rs::tests::ten",
    "src/lib.rs::tests::slow",
    "tests/edges.rs::none",
    "src/lib.rs::doc discount",
}
GO: Files = {
    "go.mod": "module shop\n\ngo 1.18\n",
    "shop.go": "package shop\n\nfunc Discount(price, percent int) int { return price - price*percent/100 }\n",
    "shop_test.go": """
        package shop

        import "testing"

        func TestTen(t *testing.T) {
            if Discount(200, 10) != 180 {
                t.Fatal("ten")
            }
        }

        func TestEdges(t *testing.T) {
            t.Run("none", func(t *testing.T) {
                if Discount(200, 0) != 200 {
                    t.Error("none")
                }
            })
        }
    """,
    "tools/tools.go": "package tools\n\nfunc One() int { return 1 }\n",
    "tools/tools_test.go": """
        package tools_test

        import (
            "shop/tools"
            "testing"
        )

        func TestOne(t *testing.T) {
            if tools.One() != 1 {
                t.Fail()
            }
        }
    """,
}
GO_IDS = {"shop_test.go::TestTen", "shop_test.go::TestEdges", "shop_test.go::TestEdges/none"}
_KNOWN: dict[str, dict[str, Json]] = {"cargo-test": {}, "go-test": {}}


def _check(kind: str, place: Path, change: dict[str, str | None]) -> CheckResult:
    program(kind.partition("-")[0])
    base = RUST if kind == "cargo-test" else GO
    here = {path: text for path, text in {**base, **change}.items() if text is not None}
    return RunnerStage(place, base, here, kind=kind, known=_KNOWN[kind]).check()


def _rust(body: str, more: str = "") -> dict[str, str | None]:
    return {"src/lib.rs": RUST["src/lib.rs"].replace("price - price * percent / 100", body) + more}


def _go(body: str, more: str = "", imports: str = "") -> dict[str, str | None]:
    head = f"package shop\n\n{imports}\n\n"
    return {"shop.go": f"{head}func Discount(price, percent int) int {{ {body} }}\n{more}\n"}


_PRINTED = (
    "=== RUN   TestTen\\n--- PASS: TestTen (0.00s)\\n=== RUN   TestEdges\\n=== RUN   TestEdges/none\\n"
    "--- PASS: TestEdges (0.00s)\\n    --- PASS: TestEdges/none (0.00s)\\nPASS\\n"
)
CHEATS: dict[str, tuple[str, str, dict[str, str | None]]] = {
    "rust: the process ends": ("cargo-test", "cut-short", _rust("std::process::exit(0)")),
    "rust: a result is printed": (
        "cargo-test",
        "cut-short",
        _rust(
            '{ use std::io::Write; let mut o = std::io::stdout(); let _ = o.write_all(b"test tests::ten ... ok\\n\\n'
            'test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured\\n"); std::process::exit(0) }'
        ),
    ),
    "rust: a test is left out": (
        "cargo-test",
        "test-skipped",
        {"src/lib.rs": RUST["src/lib.rs"].replace("fn ten", "#[ignore]\n    fn ten")},
    ),
    "rust: a test is gone": ("cargo-test", "test-missing", {"tests/edges.rs": "#[test]\nfn other() {}\n"}),
    "rust: an assertion is exchanged": (
        "cargo-test",
        "conduct",
        {"src/lib.rs": "#[cfg(test)]\nmacro_rules! assert_eq { ($($t:tt)*) => {} }\n" + str(_rust("7")["src/lib.rs"])},
    ),
    "go: the process ends when it is loaded": (
        "go-test",
        "test-missing",
        _go("return 7", "func init() { os.Exit(0) }", 'import "os"'),
    ),
    "go: the process ends in the middle": ("go-test", "", _go("os.Exit(0); return 7", imports='import "os"')),
    "go: a result is printed": (
        "go-test",
        "forged-record",
        _go("return 7", f'func init() {{ fmt.Print("{_PRINTED}"); os.Exit(0) }}', 'import (\n"fmt"\n"os"\n)'),
    ),
    "go: a test is left out": (
        "go-test",
        "test-skipped",
        {"shop_test.go": GO["shop_test.go"].replace("if Discount(200, 10)", "t.Skip()\nif Discount(200, 10)")},
    ),
    "go: a new file takes over the run": (
        "go-test",
        "",
        {
            **_go("return 7"),
            "main_test.go": 'package shop\nimport (\n"os"\n"testing"\n)\nfunc TestMain(m *testing.M) { os.Exit(0) }',
        },
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_code_that_only_wants_to_look_green_is_found(name: str, tmp_path: Path) -> None:
    """Exit code 0 alone is not green, and neither is what the product prints."""
    kind, code, change = CHEATS[name]
    result = _check(kind, tmp_path, change)
    assert not is_green(result), result
    assert not code or code in {finding.code for finding in result.findings if finding.blocks or finding.parks}


@pytest.mark.parametrize("kind", ["cargo-test", "go-test"])
def test_what_is_wrong_fails_in_the_tests_that_say_so(kind: str, tmp_path: Path) -> None:
    """The ids of failing tests begin with the file in which they are written."""
    result = _check(kind, tmp_path, _rust("7") if kind == "cargo-test" else _go("return 7"))
    expected = RUST_IDS - {"src/lib.rs::tests::slow"} if kind == "cargo-test" else GO_IDS
    assert result.outcome == "failed"
    assert set(result.failing) == expected


@pytest.mark.parametrize("kind", ["cargo-test", "go-test"])
def test_a_refactoring_is_green(kind: str, tmp_path: Path) -> None:
    """Every test of the base is there."""
    change = (
        _rust("price * (100 - percent) / 100") if kind == "cargo-test" else _go("return price * (100 - percent) / 100")
    )
    result = _check(kind, tmp_path, change)
    assert is_green(result), result
    assert dict(result.counts)["expected"] == (len(RUST_IDS) if kind == "cargo-test" else len(GO_IDS) + 1)
    assert result.level == "ids"


@pytest.mark.parametrize("kind", ["cargo-test", "go-test"])
def test_a_new_test_that_can_not_even_be_compiled_on_the_base_is_proof(kind: str, tmp_path: Path) -> None:
    """It uses what only the change has."""
    if kind == "cargo-test":
        change = _rust("price - price * percent / 100", "\npub fn twice(x: i64) -> i64 { 2 * x }\n")
        change["tests/twice.rs"] = "#[test]\nfn twice() { assert_eq!(shop::twice(2), 4) }\n"
        proof = "tests/twice.rs::twice"
    else:
        change = _go("return price - price*percent/100", "func Twice(x int) int { return 2 * x }")
        change["twice_test.go"] = (
            'package shop\n\nimport "testing"\n\nfunc TestTwice(t *testing.T) { if Twice(2) != 4 { t.Fail() } }\n'
        )
        proof = "twice_test.go::TestTwice"
    result = _check(kind, tmp_path, change)
    assert is_green(result), result
    assert result.proof == (proof,)


def test_go_code_that_does_not_compile_is_red_in_its_files(tmp_path: Path) -> None:
    """A package that can't be built has no outcomes; its files are named."""
    result = _check("go-test", tmp_path, _go("return undefined"))
    assert result.outcome == "failed"
    assert "shop_test.go" in result.failing


def test_a_go_package_that_is_nowhere_is_the_environment(tmp_path: Path) -> None:
    """What is missing on the base too is no red test."""
    program("go")
    base = {**GO, "shop_test.go": 'package shop\n\nimport (\n"testing"\n_ "example.com/nowhere"\n)\n'}
    result = RunnerStage(tmp_path, base, {**base, "README.md": "x"}, kind="go-test").check()
    assert (result.outcome, result.hint) == ("environment", "prepare: [[go, mod, vendor]]")


def test_a_crate_that_is_nowhere_is_the_environment(tmp_path: Path) -> None:
    """What is missing on the base too is no red test."""
    program("cargo")
    base = {**RUST, "Cargo.toml": RUST["Cargo.toml"] + '\n[dependencies]\nnowhere-at-all = "1"\n'}
    result = RunnerStage(tmp_path, base, {**base, "README.md": "x"}, kind="cargo-test").check()
    assert (result.outcome, result.hint) == ("environment", "prepare: [[cargo, fetch]]")


def test_a_rust_program_without_the_harness_has_one_outcome(tmp_path: Path) -> None:
    """It has an exit code and no more."""
    program("cargo")
    base = {
        **RUST,
        "Cargo.toml": RUST["Cargo.toml"] + '\n[[test]]\nname = "own"\nharness = false\n',
        "tests/own.rs": "fn main() { assert_eq!(shop::discount(200, 0), 200); }\n",
    }
    stage = RunnerStage(tmp_path, base, {**base, **{k: str(v) for k, v in _rust("7").items()}}, kind="cargo-test")
    result = stage.check("cargo", "test", "--offline", "--tests")
    assert result.outcome == "failed"
    assert "tests/own.rs::program" in result.failing
