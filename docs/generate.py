"""Writes docs/reference from the code: `python docs/generate.py`; with `--check` it fails where a page is old."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.engine.events import Event
    from bailiwick.errors import BailiwickError
    from bailiwick.lang.fields import Shape

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "bailiwick"
TARGET = ROOT / "docs" / "reference"
NOTE = "<!-- Made by docs/generate.py from the code; `make docs` writes it again. -->"
CODE = re.compile(r"BW\d{3}")
OWN_VARIABLE = re.compile(r"BAILIWICK_[A-Z_]*[A-Z]")

EXIT_CODES = {
    0: "done; for a query: answered",
    1: "failed: a node failed for good, or the run ended at a `fail` node",
    2: "usage or bad input; nothing was started",
    3: "waits for a person",
    4: "done, but degraded: a default stood in for an answer",
    5: "a budget is used up; the run parks until a person raises it",
    6: "handed to a person: a `fail` node with `handoff`, such as an agent that refused or used its attempts up",
    7: "waits for time (`run --no-wait`), or `runs wait --timeout` is over",
    8: "not ready: something has to be there first, or another process holds the run; nothing was spent",
    70: "a bug of ours, or a damaged journal",
    129: "a worker left because its terminal was closed",
    130: "interrupted or stopped; the same command goes on",
    143: "terminated; the same command goes on",
}
FOUND_BY_SCAN = frozenset({"BAILIWICK_COMPLETE"})
"""Names in the code that a shell sets for completion, not a person."""


def page(title: str, intro: str, parts: Iterable[str]) -> str:
    """A page: a note for editors, the title, one paragraph, its parts."""
    return "\n\n".join([NOTE, f"# {title}", intro, *parts]) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; `|` in a cell is escaped, line breaks become spaces."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def cli_page() -> str:
    """Every command with its help, as click prints it."""
    import click

    from bailiwick.cli.root import root

    def walk(command: click.Command, ctx: click.Context) -> Iterator[str]:
        level = "#" * min(4, ctx.command_path.count(" ") + 2)
        help_text = command.get_help(ctx).rstrip()
        yield f"{level} `{ctx.command_path}`\n\n```text\n{help_text}\n```"
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                below = command.get_command(ctx, name)
                if below is not None:
                    yield from walk(below, click.Context(below, ctx, info_name=name, terminal_width=80))

    top = click.Context(root, info_name="bailiwick", terminal_width=80)
    intro = "Every command and flag, as `--help` prints them. What they return: [exit codes](exit-codes.md)."
    return page("Commands", intro, walk(root, top))


def workflow_page() -> str:
    """The fields of `workflow.yaml` from the tables that check it."""
    from bailiwick.lang import compile as compiling
    from bailiwick.lang import control, draft, work
    from bailiwick.lang.fields import Table
    from bailiwick.lang.kinds import KINDS

    def section(level: str, title: str, words: str, shown: Table) -> str:
        rows = [(f"`{f.name}`", _shape(f.shape), "yes" if f.required else "", f.doc) for f in shown.fields]
        said = f"{words}\n\n" if words else ""
        return f"{level} {title}\n\n{said}" + table(("field", "takes", "required", "what it is"), rows)

    nested = (compiling.BUDGET, draft.DISPLAY, draft.OUTPUT, draft.RETRY, control.CONDITION, control.POLL)
    parts = [section("##", "The file", "", compiling.WORKFLOW), "## Node types"]
    parts += [section("###", f"`{kind.name}`", _doc(kind.compile), kind.table) for kind in KINDS.values()]
    parts.append("## Objects inside nodes")
    parts += [section("###", f"`{shown.title}`", "", shown) for shown in nested]
    intro = (
        "Every field that a `workflow.yaml` may have. `bailiwick schema workflow` prints the same as JSON Schema. "
        f"Packages add node types through the entry point group `{work.GROUP}`. "
        "How to use them: [write a workflow](../how-to/write-a-workflow.md), [run agents](../how-to/run-agents.md); "
        "the `skill` of an agent node is checked, and nothing acts on it yet."
    )
    return page("workflow.yaml", intro, parts)


def _shape(shape: Shape) -> str:
    from bailiwick.lang.fields import Anything, ListOf, MapOf, OneOf, Table

    match shape:
        case Anything():
            return "any value"
        case Table():
            return f"[`{shape.title}`](#{shape.title.replace(' ', '-')})"
        case ListOf():
            return f"a list: {_shape(shape.item)}"
        case MapOf():
            return f"a mapping: {_shape(shape.item)}"
        case OneOf():
            return ", or ".join(dict.fromkeys(_shape(part) for part in shape.shapes))
        case _:
            return shape.expects


def config_page() -> str:
    """Every key with its default, its rule and its variables."""
    from bailiwick.config.display import worded
    from bailiwick.config.keys import CONCRETE_VARIABLES, KEYS, Key

    groups: dict[str, list[tuple[str, ...]]] = {}
    head = ("key", "what it is", "takes", "default", "layers", "variables", "repository may set it")

    def row(key: Key) -> tuple[str, ...]:
        rule = f"limit: {key.rule.words}" if key.rule else "the most specific wins"
        default = f"`{worded(key.default, key)}`" if key.default is not None else ""
        names = [f"`{name}`" for name in (*key.variables, *(v for v, k in CONCRETE_VARIABLES.items() if k == key.name))]
        may = "yes" if key.repository else "no"
        return (f"`{key.name}`", key.doc, _shape(key.shape), default, rule, ", ".join(names), may)

    for key in KEYS:
        groups.setdefault(key.name.split(".")[0] if "." in key.name else "general", []).append(row(key))
    parts = [f"## {name}\n\n{table(head, rows)}" for name, rows in groups.items()]
    others = [(f"`{name}`", f"`{key}`") for name, key in CONCRETE_VARIABLES.items()]
    parts.append(f"## Variables of other tools\n\n{table(('variable', 'key'), others)}")
    intro = (
        "Every configuration key. `*` stands for a name that you choose. How layers combine, and which keys this "
        "version acts on: [configure](../how-to/configure.md). `bailiwick config show --origin` prints what counts "
        "where you are."
    )
    return page("Configuration", intro, parts)


def events_page() -> str:
    """Every event of the journal with its fields."""
    from bailiwick.engine.events import TYPES

    def section(name: str, kind: type[Event]) -> str:
        rows = [(f"`{f.name}`", f"`{f.type}`", _default(f)) for f in fields(kind)]
        said = f"## {name}\n\n{_doc(kind)}"
        return f"{said}\n\n{table(('field', 'type', 'default'), rows)}" if rows else said

    intro = (
        "What a journal holds, in the past tense. `bailiwick run --events` prints them as lines of JSON when they are "
        "durable, and `bailiwick runs export` puts them into `journal.ndjson`. A field with its default is left out."
    )
    return page("Events", intro, [section(name, kind) for name, kind in TYPES.items()])


def _default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        return f"`{field.default!r}`"
    return f"`{field.default_factory()!r}`" if field.default_factory is not MISSING else "required"


def errors_page() -> str:
    """Every code with its meaning, and the classes behind them."""
    from bailiwick import errors
    from bailiwick.app.service import LOST
    from bailiwick.lang.codes import MEANING

    ours = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.BailiwickError)]
    classes = [*ours, *feature_errors()]
    tree = [(f"`{c.__name__}`", f"`{c.default_code}`", str(c.exit_code), _doc(c)) for c in classes]
    files = [(f"`{code}`", meaning) for code, meaning in MEANING.items()]
    told = sorted((code, *rest) for code, rest in scan_codes().items() if code not in MEANING)
    rows = [
        (f"`{code}`", "<br>".join(sorted(says)), ", ".join(f"`{name}`" for name in sorted(kinds)))
        for code, says, kinds in told
    ]
    rows.append((f"`{LOST}`", "…: the journal lost what was written last: …", "a warning"))
    parts = [
        f"## Problems in input files\n\n{table(('code', 'meaning'), files)}",
        f"## Problems elsewhere\n\n{table(('code', 'message', 'raised as'), rows)}",
        "## Classes\n\nA message without a code of its own carries that of its class.",
        table(("class", "code", "exit code", "what to do"), tree),
    ]
    intro = (
        "A message reads `error[CODE]: file:line:column: what`, then `try:` with the way out. Codes are stable; "
        "sentences may change. `…` stands for what depends on the case. Numbers: 1xx input files, 2xx usage and "
        "configuration, 3xx the store, 4xx fence, gate, proposals and audit, 5xx budgets, 8xx not ready, 9xx ours."
    )
    return page("Errors", intro, parts)


def feature_errors() -> list[type[BailiwickError]]:
    """The error classes of features that have a code of their own."""
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if "    default_code = " in path.read_text("utf-8")]
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files]
    there = [(name, c) for name in names for c in vars(import_module(name)).values() if isinstance(c, type)]
    return [c for name, c in there if c.__module__ == name != "bailiwick.errors" and "default_code" in vars(c)]


def scan_codes() -> dict[str, tuple[set[str], set[str]]]:
    """Codes that are written in the source where a message is made: the messages and what they are raised as."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if "bundled" not in path.parts]
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
        for path in paths
    }
    names = {(module, name): code for module, tree in modules.items() for name, code in _constants(tree)}
    for tree in modules.values():
        own = {name: names[there, name] for there, name in _imported(tree) if (there, name) in names}
        own |= dict(_constants(tree))
        for word, code in _by_word(tree):
            says, _ = found.setdefault(code, (set(), set()))
            says.add(f"a failure of the kind `{word}`")
        for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)):
            for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
                code = _code_of(call, own)
                message = _message_of(call, function, own) if code else ""
                if message:
                    says, kinds = found.setdefault(code, (set(), set()))
                    says.add(message)
                    kinds.add(_kind_of(call))
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=ast.Constant(value=text)) if CODE.fullmatch(
                str(text)
            ):
                yield name, str(text)


def _by_word(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Codes of a table that gives one for each kind of failure."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            plain = (
                (str(k.value), str(v.value))
                for k, v in pairs
                if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)
            )
            yield from ((word, code) for word, code in plain if CODE.fullmatch(code))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of all that is imported from a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def _code_of(call: ast.Call, names: dict[str, str]) -> str:
    for value in (*call.args[:1], *(k.value for k in call.keywords if k.arg == "code")):
        if isinstance(value, ast.Constant) and CODE.fullmatch(str(value.value)):
            return str(value.value)
        if isinstance(value, ast.Name) and value.id in names:
            return names[value.id]
    return ""


def _message_of(call: ast.Call, function: ast.AST, names: dict[str, str]) -> str:
    """The first text of a call that is no code; a variable is looked up in the function around, else the hint tells."""
    for value in call.args:
        looked = value
        if isinstance(value, ast.Name) and value.id not in names:
            sets = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and _assigns(n, value.id)]
            looked = sets[0].value if sets else value
        text = _text(looked)
        if text and not CODE.fullmatch(text):
            return text
    hints = [_text(keyword.value) for keyword in call.keywords if keyword.arg == "hint"]
    return f"… ({hints[0]})" if hints and hints[0] else ""


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.IfExp):
        return "<br>".join(filter(None, (_text(node.body), _text(node.orelse))))
    return ""


def _kind_of(call: ast.Call) -> str:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    quiet = any(k.arg == "warning" and isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords)
    return {"error": "InputInvalid", "warn": "warning"}.get(name, "warning" if quiet else name)


def environment_page() -> str:
    """Every variable that is read or set."""
    from bailiwick.config.keys import CONCRETE_VARIABLES, KEYS
    from bailiwick.config.variables import MEANING

    known = dict(MEANING)
    own = sorted(known.items(), key=lambda item: (not item[0].startswith("BAILIWICK"), item[0]))
    keys = [(name, key.name) for key in KEYS for name in key.variables]
    keys += list(CONCRETE_VARIABLES.items())
    lost = scan_variables() - set(known) - {name for name, _ in keys} - FOUND_BY_SCAN
    if lost:
        raise SystemExit(f"generate: no meaning for {', '.join(sorted(lost))}; add it to config/environment.py")
    parts = [
        f"## Read or set\n\n{table(('variable', 'what it is'), [(f'`{name}`', text) for name, text in own])}",
        f"## Configuration keys\n\n{table(('variable', 'key'), [(f'`{name}`', f'`{key}`') for name, key in keys])}",
    ]
    return page("Environment variables", "An empty variable counts as not set.", parts)


def scan_variables() -> set[str]:
    """Names of our variables that stand as texts in the source."""
    sources = (path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    return {name for text in sources for name in OWN_VARIABLE.findall(text)}


def exit_codes_page() -> str:
    """Every exit code, checked against those the code has."""
    codes = exit_codes()
    if codes != set(EXIT_CODES):
        raise SystemExit(f"generate: exit codes without a meaning or without a use: {sorted(codes ^ set(EXIT_CODES))}")
    rows = [(f"`{code}`", text) for code, text in EXIT_CODES.items()]
    intro = "Commands that walk or wait for a run return its code; queries return 0 or 2."
    return page("Exit codes", intro, [table(("code", "meaning"), rows)])


def exit_codes() -> set[int]:
    """The codes that errors, runs and signals end with."""
    from bailiwick import errors

    foreground = import_module("bailiwick.runs.foreground")
    hosting = import_module("bailiwick.cli.hosting")
    names = ("DONE", "FAILED", "WAITS", "DEGRADED", "BUDGET", "HANDOFF", "TIME", "STOPPED")
    own = {c.exit_code for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.BailiwickError)}
    return own | {getattr(foreground, name) for name in names} | set(hosting.CODES.values())


def _doc(thing: object) -> str:
    return " ".join((getattr(thing, "__doc__", "") or "").split("\n\n")[0].split())


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "workflow.md": workflow_page,
    "config.md": config_page,
    "events.md": events_page,
    "errors.md": errors_page,
    "environment.md": environment_page,
    "exit-codes.md": exit_codes_page,
}


def outdated(target: Path = TARGET) -> list[str]:
    """The pages below `target` that differ from what the code says, or are missing or left over."""
    there = {path.name: path.read_text("utf-8") for path in target.glob("*.md")} if target.is_dir() else {}
    made = {name: make() for name, make in PAGES.items()}
    return sorted(name for name in there.keys() | made.keys() if there.get(name) != made.get(name))


def write(target: Path = TARGET) -> list[str]:
    """Write what is out of date; gives the names."""
    changed = outdated(target)
    target.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in PAGES:
            (target / name).write_text(PAGES[name](), "utf-8")
        else:
            (target / name).unlink()
    return changed


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` only say which are out of date."""
    if arguments not in ([], ["--check"]):
        print("usage: generate.py [--check]", file=sys.stderr)
        return 2
    if not arguments:
        print(f"written: {', '.join(write()) or 'nothing, all pages are up to date'}")
        return 0
    late = outdated()
    if late:
        print(f"out of date: {', '.join(late)}; run `make docs`", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
