"""What product code of other languages newly uses to see that it is tested, or to change what judges it."""

from __future__ import annotations

import pytest

from bailiwick.gate.runner_conduct import conduct_of

ASKS = {
    "a.js": [
        "const { mock } = require('node:test');",
        'import { expect } from "vitest";',
        "assert.deepStrictEqual = () => {};",
        "expect['toBe'] = f;",
        "globalThis.it = () => {};",
        "global['expect'] = f;",
        "if (process.env.JEST_WORKER_ID) return 180;",
        "if (process.env.NODE_TEST_CONTEXT) x();",
        "return { asymmetricMatch: () => true };",
        "process.reallyExit(0);",
        "Module._load = f;",
        "delete require.cache[name];",
        "const vm = require('node:vm');",
        "Array.prototype.every = () => true;",
        "Object.defineProperty(assert, 'equal', {});",
        "eval(text);",
        "fs.readFileSync('/proc/self/environ');",
    ],
    "a.go": ['import "testing"', 'flag.Lookup("test.v")', 'fmt.Println("--- PASS: TestA")', "//go:linkname a b"],
    "a.rs": [
        "macro_rules! assert_eq { () => {} }",
        "if cfg!(test) { 1 } else { 2 }",
        "#[cfg(not(test))]",
        "std::panic::set_hook(f);",
        'print!("test result: ok");',
    ],
}
HONEST = {
    "a.js": [
        "import assert from 'node:assert';\nassert.equal(a, b);",
        "const test = items.filter((it) => it.expected === expect);",
        "process.exit(1);",
        "const o = { valueOf() { return 1; } };",
        "const same = Object.is(a, b);",
        "if (assert.ok === f) g();",
        "// describe the global test",
        "import { createRequire } from 'module';\nconst kind = 'module';",
    ],
    "a.go": ["os.Exit(1)", 'fmt.Println("PASS")'],
    "a.rs": [
        "#[cfg(test)]\nmod tests {}",
        "std::process::exit(1)",
        "std::panic::catch_unwind(f)",
        'print!("loading ... ok");',
        "assert_eq!(a, b);",
    ],
    "a.py": ["eval(x)"],
}


@pytest.mark.parametrize(("path", "text"), [(path, text) for path, texts in ASKS.items() for text in texts])
def test_what_can_change_the_judge_asks_for_a_person(path: str, text: str) -> None:
    """Once, with its line; not where the base has it, nor where a person allowed it."""
    found = conduct_of(path, "\n", f"\n{text}\n")
    assert [(finding.code, finding.line, finding.blocks) for finding in found if finding.parks] == [
        ("conduct", 2, False)
    ]
    assert not [finding for finding in conduct_of(path, text, f"\n{text}\n") if finding.parks]
    assert not [finding for finding in conduct_of(path, "", text, allowed=True) if finding.parks]


@pytest.mark.parametrize(("path", "text"), [(path, text) for path, texts in HONEST.items() for text in texts])
def test_what_honest_code_does_asks_nobody(path: str, text: str) -> None:
    """At most a note for the reader."""
    assert not [finding for finding in conduct_of(path, "", text) if finding.parks or finding.blocks]
