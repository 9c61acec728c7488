"""Runs of `go test` and `cargo test`."""

from __future__ import annotations

import json
import re
import secrets
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bailiwick.gate.backends.ran import RanTests, code_of, timed
from bailiwick.gate.backends.runner_start import NotUnderstoodError, RunnerPlace, RunnerRequest
from bailiwick.gate.reading import read_all
from bailiwick.gate.run import NOT_FOUND
from bailiwick.gate.runner_records import TokenLines
from bailiwick.gate.runner_sessions import GoTree, read_cargo, read_go
from bailiwick.ids import Json
from bailiwick.processes.command import Exit

_PACKAGE = re.compile(r"(?m)^\s*package\s+(\w+)")
_MODULE = re.compile(r"(?m)^\s*module\s+\"?([^\s\"]+)")
_NO_TESTS_OF_OURS = re.compile(r"(?:^|/)(?:vendor|testdata|[._][^/]*)/")
_CARGO_TEST = ("test", "t")


async def run_go(place: RunnerPlace, asked: RunnerRequest) -> RanTests:
    """Run `go test` with a test of ours beside those of each folder: it has to be told as passed with the others."""
    words = list(place.spec.run)
    if words[:2] != ["go", "test"]:
        raise NotUnderstoodError
    args = [word for word in words[2:] if word not in ("-v", "-json")]
    token = secrets.token_hex(8)
    chosen = any(word.startswith(("-run", "-skip")) for word in args)
    known = await _go_tree(place, asked, "" if chosen else f"TestZz{token}")
    added: dict[str, bytes | None] = {
        f"{folder}/zz_{token}_test.go".lstrip("/"): _canary(known, folder, name)
        for folder, name in known.canaries.items()
    }
    tree = await place.context.fresh(asked.which, {**asked.files, **added})
    if asked.only:
        args = [word for word in args if not word.startswith((".", known.module))]
        args += sorted({f"./{path.rpartition('/')[0]}" for path in asked.only})
    end = await place.start(tree, ("go", "test", "-json", *args), {})
    session = timed(read_go(end.stdout, code_of(end), known), end)
    return RanTests(session, _readable(end), missing="go" if _is_missing(end, "go") else "")


async def _go_tree(place: RunnerPlace, asked: RunnerRequest, canary: str) -> GoTree:
    """The module and the test files of a tree."""
    context = place.context
    paths = {path for path in await context.files(asked.which) if asked.files.get(path, b"") is not None}
    paths |= {path for path, data in asked.files.items() if data is not None}
    others = tuple(f"{path.rpartition('/')[0]}/" for path in paths if path.endswith("/go.mod"))
    wanted = [
        path
        for path in sorted(paths)
        if path.endswith("_test.go") and not _NO_TESTS_OF_OURS.search(path) and not path.startswith(others or ("\0",))
    ]
    texts = await read_all(lambda path: context.read(asked.which, path), [p for p in wanted if p not in asked.files])
    known = {path: (asked.files.get(path) or texts.get(path) or b"").decode("utf-8", "replace") for path in wanted}
    module = _MODULE.search((await context.read(asked.which, "go.mod") or b"").decode("utf-8", "replace"))
    folders = dict.fromkeys(path.rpartition("/")[0] for path in wanted) if canary else {}
    return GoTree(module[1] if module else "", known, dict.fromkeys(folders, canary))


def _canary(known: GoTree, folder: str, name: str) -> bytes:
    texts = (known.tests[path] for path in known.files(folder))
    package = next((found[1] for text in texts if (found := _PACKAGE.search(text))), "main")
    return f'package {package}\n\nimport "testing"\n\nfunc {name}(t *testing.T) {{}}\n'.encode()


def _readable(end: Exit) -> Exit:
    """What the tests printed, instead of the events that carry it."""
    texts: list[str] = []
    for line in end.stdout.decode("utf-8", "replace").splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            texts.append(f"{line}\n")
            continue
        if isinstance(event, dict) and event.get("Action") in ("output", "build-output"):
            texts.append(str(event.get("Output", "")))
    return replace(end, stdout="".join(texts).encode())


async def run_cargo(place: RunnerPlace, asked: RunnerRequest) -> RanTests:
    """Run `cargo test` with every test program started through a script of ours."""
    words = list(place.spec.run)
    at = next((index for index, word in enumerate(words) if word in _CARGO_TEST), 0)
    if words[:1] != ["cargo"] or not at:
        raise NotUnderstoodError
    tree = await place.context.fresh(asked.which, asked.files or None)
    token = secrets.token_hex(16)
    script = json.dumps(["sh", str(place.reporters / "cargo.sh")])
    own = [f"--config=target.'cfg(all())'.runner={script}", "--no-fail-fast"]
    own += [word for path in map(Path, asked.only) if path.parent.name == "tests" for word in ("--test", path.stem)]
    rest = [word for word in words[at + 1 :] if word != "--no-fail-fast"]
    lines = TokenLines(token)
    plain = " ".join(without_harness(await place.context.read(asked.which, "Cargo.toml") or b""))

    def mark(handle: int) -> dict[str, str]:
        return {"BAILIWICK_PIPE": str(handle), "BAILIWICK_TOKEN": token, "BAILIWICK_PLAIN": plain}

    end = await place.heard(tree, (*words[: at + 1], *own, *rest), lines, mark)
    output = (end.stdout.decode("utf-8", "replace"), end.stderr.decode("utf-8", "replace"))
    session = timed(read_cargo(lines.all, lines.fault, output, code_of(end)), end)
    if asked.only and not session.outcomes and "could not compile" in output[1]:
        session = replace(session, uncollected=asked.only, faults=())
    return RanTests(session, end, missing="cargo" if _is_missing(end, "cargo") else "")


def without_harness(manifest: bytes) -> Iterable[str]:
    """The names of test programs that are written without Rust's own harness: they only have an exit code."""
    try:
        data: dict[str, Json] = tomllib.loads(manifest.decode())
    except ValueError:
        return ()
    listed = [
        item for kind in ("test", "bench", "bin", "example") for item in data.get(kind, []) if isinstance(item, dict)
    ]
    library = data.get("lib", {})
    plain = [str(item.get("name", "")) for item in listed if item.get("harness") is False]
    if isinstance(library, dict) and library.get("harness") is False:
        plain.append(str(library.get("name") or data.get("package", {}).get("name", "")))
    return [name.replace("-", "_") for name in plain]


def _is_missing(end: Exit, program: str) -> bool:
    return end.code == NOT_FOUND and f"{program}: not found".encode() in end.stderr
