"""Graphs for the drawing tests, made by hand."""

from __future__ import annotations

from bailiwick.engine.graph import Ask, Branch, Call, Condition, End, Graph, Map, Node, Parallel, Set, Wait, Work

HOSTILE = (
    'x"]; evil --> done["',
    "</text><script>alert(1)</script>",
    "&lt;b&gt; &amp; ' \\",
    'a\nsubgraph pwned\nend\nb"',
    "`**md**` #35; %%{init} ;;",
    '" ] ; "evil" -> "done" [label="',
    "\\",
    "\x00\x1b[31mred\u202e",
    "",
    "{{ 7 * 7 }}|{% raw %}",
)


def script(name: str, following: str, on_error: str | None = None) -> Work:
    """A script node."""
    return Work(id=name, type="script", spec={"script": f"scripts/{name}.sh"}, next=following, on_error=on_error)


def graph(*nodes: Node, name: str = "shop", description: str = "") -> Graph:
    """A graph that starts at its first node."""
    return Graph(name=name, start=nodes[0].id, nodes={node.id: node for node in nodes}, description=description)


def loop() -> Graph:
    """A step, a branch that goes back, forward or to an end."""
    return graph(
        script("fetch", "check", on_error="broken"),
        Branch(
            id="check",
            path="result.status",
            cases={"ok": "done", "again": "fetch"},
            conditions=(Condition(">=", "10", "done"),),
            default="broken",
        ),
        End(id="done"),
        End(id="broken", failed=True),
    )


def scopes() -> Graph:
    """A parallel of two branches, one of which maps over a list."""
    return graph(
        Parallel(id="fan", branches={"lint": "lint", "tests": "each"}, join="report", on_error="broken"),
        script("lint", "report"),
        Map(id="each", over="cases", as_="case", body="one", join="sum"),
        script("one", "sum"),
        script("sum", "report"),
        script("report", "done"),
        End(id="done"),
        End(id="broken", failed=True),
    )


def every_kind() -> Graph:
    """One node of each kind."""
    return graph(
        Work(id="think", type="agent", spec={"prompt": "prompts/think.md"}, next="count"),
        Set(id="count", values={"n": 1}, next="nap"),
        Wait(id="nap", seconds="60", next="child"),
        Call(id="child", workflow="other", next="person"),
        Ask(id="person", question="Go on?", choices=("yes", "no"), next="which"),
        Branch(id="which", path="person", cases={"yes": "done"}, default="broken"),
        End(id="done"),
        End(id="broken", failed=True),
    )


def hostile(value: str) -> Graph:
    """A graph in which a text that wants out stands wherever a person may write text."""
    return graph(
        Ask(id="ask", question=value, choices=("a",), next="fork"),
        Branch(id="fork", path=value or "x", cases={value: "done"}, default="stop"),
        Parallel(id="stop", branches={value or "b": "inner"}, join="done"),
        script("inner", "done"),
        End(id="done"),
        description=value,
    )


def chain(length: int) -> Graph:
    """As many scripts in a row, each with a way to one failure node."""
    nodes = [script(f"n{i}", f"n{i + 1}", on_error="broken") for i in range(length)]
    return graph(*nodes, End(id=f"n{length}"), End(id="broken", failed=True))


def nest(depth: int) -> Graph:
    """Maps in maps in maps."""
    nodes: list[Node] = []
    for i in range(depth):
        body = f"m{i + 1}" if i < depth - 1 else "work"
        nodes += [Map(id=f"m{i}", over="items", body=body, join=f"j{i}"), script(f"j{i}", f"j{i - 1}" if i else "done")]
    return graph(*nodes, script("work", f"j{depth - 1}"), End(id="done"))
