"""Random workflows: structured programs of every control kind, compiled to graphs that always end."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from bailiwick.engine import graph as g


@dataclass
class _Build:
    """Collects nodes while a program is laid out back to front."""

    nodes: dict[str, g.Node] = field(default_factory=dict)
    count: int = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def add(self, node: g.Node) -> str:
        self.nodes[node.id] = node
        return node.id


Program = list[tuple[object, ...]]


def programs(depth: int = 2) -> st.SearchStrategy[Program]:
    """A list of statements; nested ones up to `depth`."""
    leaf = st.one_of(
        st.tuples(st.just("set"), st.sampled_from(["a", "b"]), st.integers(0, 3)),
        st.tuples(st.just("work"), st.sampled_from(["a", "b", "c"]), st.integers(0, 2), st.booleans()),
        st.tuples(
            st.just("wait"),
        ),
        st.tuples(
            st.just("poll"),
        ),
        st.tuples(
            st.just("ask"),
        ),
        st.tuples(
            st.just("call"),
        ),
    )
    if depth == 0:
        return st.lists(leaf, min_size=1, max_size=3)
    inner = programs(depth - 1)
    nested = st.one_of(
        st.tuples(st.just("if"), st.sampled_from(["a", "b"]), inner, inner),
        st.tuples(st.just("loop"), st.integers(1, 3), inner),
        st.tuples(st.just("parallel"), st.lists(inner, min_size=1, max_size=3), st.booleans(), st.integers(1, 3)),
        st.tuples(st.just("map"), st.integers(0, 3), inner, st.booleans(), st.integers(1, 3)),
    )
    return st.lists(st.one_of(leaf, leaf, nested), min_size=1, max_size=4)


@st.composite
def workflows(draw: st.DrawFn) -> g.Graph:
    """A graph that ends, whatever its effects come to."""
    build = _Build()
    build.add(g.End(id="done"))
    build.add(g.End(id="bad", failed=True, reason="handled"))
    start = _lay(build, draw(programs()), "done")
    lists = {f"list{n}": list(range(n)) for n in range(4)}
    return g.Graph(name="w", start=start, nodes=build.nodes, vars={"a": 0, "b": 1, "c": 2, **lists})


def _lay(build: _Build, program: Program, target: str) -> str:
    for statement in reversed(program):
        target = _statement(build, statement, target)
    return target


def _statement(build: _Build, s: tuple[object, ...], target: str) -> str:  # noqa: C901  one case per statement
    kind = str(s[0])
    me = build.name(kind)
    match s:
        case ("set", str(name), int(value)):
            return build.add(g.Set(id=me, next=target, values={name: value}))
        case ("work", str(name), int(retries), bool(handled)):
            on_error = "bad" if handled and target == "done" else (target if handled else None)
            out = (g.Output(key=name),)
            retry = g.Retry(retries, 10.0) if retries else None
            return build.add(g.Work(id=me, type="script", next=target, outputs=out, retry=retry, on_error=on_error))
        case ("wait",):
            return build.add(g.Wait(id=me, next=target, seconds="30"))
        case ("poll",):
            poll = g.Poll(script="p", every=10.0, timeout=100.0)
            return build.add(g.Wait(id=me, next=target, poll=poll, on_error=target))
        case ("ask",):
            return build.add(g.Ask(id=me, next=target, question="?", choices=("yes", "no")))
        case ("call",):
            return build.add(g.Call(id=me, next=target, workflow="child", on_error=target))
        case ("if", str(name), list(yes), list(no)):
            then, other = _lay(build, yes, target), _lay(build, no, target)
            return build.add(g.Branch(id=me, path=name, cases={"0": then}, default=other))
        case ("loop", int(times), list(body)):
            return _loop(build, me, times, body, target)
        case ("parallel", list(parts), bool(fast), int(most)):
            entries = {f"b{i}": _lay(build, part, target) for i, part in enumerate(parts)}
            return build.add(
                g.Parallel(
                    id=me, branches=entries, join=target, max=most, fail_fast=fast, on_error=target if fast else None
                )
            )
        case ("map", int(size), list(body), bool(fast), int(most)):
            entry = _lay(build, body, target)
            return build.add(
                g.Map(
                    id=me,
                    over=f"list{size}",
                    body=entry,
                    join=target,
                    max=most,
                    fail_fast=fast,
                    on_error=target if fast else None,
                )
            )
    raise AssertionError(s)


def _loop(build: _Build, me: str, times: int, body: Program, target: str) -> str:
    """Count with visits of a set node: a counter that templates can't get wrong."""
    counter = f"{me}_n"
    check, step = f"{me}_check", f"{me}_step"
    entry = _lay(build, body, step)
    build.add(g.Branch(id=check, path=counter, conditions=(g.Condition("<", str(times), entry),), default=target))
    build.add(g.Set(id=step, next=check, values={counter: f"{{{{ {counter} + 1 }}}}"}))
    return build.add(g.Set(id=me, next=check, values={counter: 0}))
