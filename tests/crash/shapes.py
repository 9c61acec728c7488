"""The graphs that are cut off: small, quick, and together every way in which a run can go on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.ids import Json

SCRIPT = """\
log="${BAILIWICK_WORKSPACE%/state/workspaces/*}/effects.log"
note() {
  printf '%s %s %s %s %s %s\\n' "$BAILIWICK_RUN" "$BAILIWICK_NODE" "$BAILIWICK_EFFECT_KEY" "$BAILIWICK_ATTEMPT" \\
    "$BAILIWICK_EPOCH" "$1" >> "$log"
}
cling() {
  if [ -e "$BAILIWICK_WORKSPACE/pids" ]; then
    left=0
    for pid in $(cat "$BAILIWICK_WORKSPACE/pids"); do
      grep -q '^State:.[^Z]' "/proc/$pid/status" && left=$((left + 1))
    done
    printf '{"left": %s}' "$left"
  else
    trap '' TERM
    setsid sleep 600 &
    echo "$$ $!" > "$BAILIWICK_WORKSPACE/pids"
    wait
  fi
}
left() {
  pid=$(cat "$BAILIWICK_WORKSPACE/pids")
  if grep -q '^State:.[^Z]' "/proc/$pid/status"; then printf '{"left": 1}'; else printf '{"left": 0}'; fi
}
hide() {
  if [ -e "$BAILIWICK_WORKSPACE/pids" ]; then left; return; fi
  loop="echo \\$\\$ > '$BAILIWICK_WORKSPACE/pids'; while :; do sleep 0.1; done"
  exec setsid -w env -i PATH="$PATH" sh -c "$loop"
}
daemon() {
  if [ -e "$BAILIWICK_WORKSPACE/pids" ]; then left; return; fi
  loop="trap '' TERM; echo \\$\\$ > '$BAILIWICK_WORKSPACE/pids'; while :; do sleep 0.1; done"
  ( setsid env -i PATH="$PATH" sh -c "$loop" < /dev/null > /dev/null 2>&1 & )
  while :; do sleep 0.1; done
}
note start
case $1 in
  say) printf '{"%s": %s}' "$2" "$3" ;;
  third) [ "$BAILIWICK_ATTEMPT" -ge 3 ] || exit 7; printf '{"%s": %s}' "$2" "$3" ;;
  even) [ $(($3 % 2)) -eq 0 ] || exit 5; printf '{"%s": %s}' "$2" "$3" ;;
  look) [ -e "$BAILIWICK_WORKSPACE/looked" ] || { : > "$BAILIWICK_WORKSPACE/looked"; note end; exit 1; } ;;
  fill) printf '{"%s": "' "$2"; head -c "$3" /dev/zero | tr '\\0' x; printf '"}' ;;
  hold) while [ ! -e "$BAILIWICK_WORKSPACE/go" ]; do sleep 0.01; done; printf '{"%s": %s}' "$2" "$3" ;;
  cling) cling ;;
  hide) hide ;;
  daemon) daemon ;;
esac
note end
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """A workflow, the workflows it calls, and how it ends."""

    name: str
    nodes: str
    context: dict[str, Json]
    head: str = ""
    children: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    def write(self, root: Path) -> Path:
        """Make the workflow's directory below `root`, its children beside it."""
        for name, text in self.children.items():
            _write(root / name, f"version: 1\nname: {name}\n{text}")
        return _write(root / self.name, f"version: 1\nname: {self.name}\n{self.head}nodes:\n{self.nodes}")


def _write(directory: Path, text: str) -> Path:
    (directory / "scripts").mkdir(parents=True)
    (directory / "workflow.yaml").write_text(text)
    (directory / "scripts" / "do.sh").write_text(SCRIPT)
    return directory


def script(name: str, target: str, *args: str, output: str = "", more: str = "") -> str:
    """The line of a script node; `output` is the key it gives."""
    outputs = f", outputs: [{{key: {output}}}]" if output else ""
    own = f"script: scripts/do.sh, args: {json.dumps(args)}{outputs}{more}"
    return f"  - {{id: {name}, type: script, {own}, next: {target}}}\n"


DONE = "  - {id: done, type: terminal}\n"

CHAIN = Shape(
    "chain",
    script("a", "b", "say", "x", "1", output="x")
    + script("b", "mark", "say", "y", "[{{ x }}, 2]", output="y")
    + "  - {id: mark, type: set, values: {z: '{{ x + 1 }}'}, next: c}\n"
    + script("c", "done", "say", "w", '{"sum": {{ x + z }}}', output="w")
    + DONE,
    {"x": 1, "y": [1, 2], "z": 2, "w": {"sum": 3}},
    head="start: a\n",
)
LOOP = Shape(
    "loop",
    script("work", "count", "say", "last", "{{ node.visit }}", output="last")
    + "  - {id: count, type: set, values: {n: '{{ n + 1 }}'}, next: more}\n"
    + "  - {id: more, type: branch, path: n, conditions: [{op: '<', value: '3', next: work}], default: done}\n"
    + DONE,
    {"n": 3, "last": 3},
    head="vars: {n: 0}\nstart: work\n",
)
RETRY = Shape(
    "retry",
    script("shaky", "done", "third", "x", "3", output="x", more=", retry: {max: 3, backoff: 20ms}") + DONE,
    {"x": 3},
    head="start: shaky\n",
)
PARALLEL = Shape(
    "parallel",
    "  - {id: fan, type: parallel, branches: {l: left, r: right}, export: [x], join: after}\n"
    + script("left", "more", "say", "x", "1", output="x")
    + script("more", "after", "say", "t", "{{ x + 1 }}", output="t")
    + script("right", "after", "say", "y", "2", output="y")
    + script("after", "done", "say", "z", "{{ x }}", output="z")
    + DONE,
    {
        "x": 1,
        "z": 1,
        "fan": {
            "l": {"status": "done", "outputs": {"x": 1, "t": 2}},
            "r": {"status": "done", "outputs": {"y": 2}},
        },
    },
    head="start: fan\n",
)
MAP = Shape(
    "map",
    "  - {id: each, type: map, over: items, as: item, body: one, max: 2, join: after}\n"
    + script("one", "after", "even", "v", "{{ item }}", output="v")
    + script("after", "done", "say", "z", "{{ each | length }}", output="z")
    + DONE,
    {
        "items": [2, 3, 4, 6],
        "z": 4,
        "each": [
            {"status": "done", "outputs": {"v": 2}},
            {
                "status": "failed",
                "error": {"node": "one", "kind": "exit", "message": "exited with 5", "detail": {"code": 5}},
            },
            {"status": "done", "outputs": {"v": 4}},
            {"status": "done", "outputs": {"v": 6}},
        ],
    },
    head="vars: {items: [2, 3, 4, 6]}\nstart: each\n",
)
NESTED = Shape(
    "nested",
    "  - {id: fan, type: parallel, branches: {m: each, s: side}, join: done}\n"
    "  - {id: each, type: map, over: items, as: item, body: one, join: inside}\n"
    + script("one", "inside", "say", "v", "{{ item * 10 }}", output="v")
    + script("inside", "done", "say", "n", "{{ each | length }}", output="n")
    + script("side", "done", "say", "s", "true", output="s")
    + DONE,
    {
        "items": [1, 2],
        "fan": {
            "m": {
                "status": "done",
                "outputs": {
                    "n": 2,
                    "each": [{"status": "done", "outputs": {"v": 10}}, {"status": "done", "outputs": {"v": 20}}],
                },
            },
            "s": {"status": "done", "outputs": {"s": True}},
        },
    },
    head="vars: {items: [1, 2]}\nstart: fan\n",
)
CALL = Shape(
    "call",
    script("first", "sub", "say", "x", "4", output="x")
    + "  - {id: sub, type: call, workflow: inner, params: {p: '{{ x }}'}, next: last}\n"
    + script("last", "done", "say", "z", "{{ sub.q }}", output="z")
    + DONE,
    {"x": 4, "z": 5, "sub": {"q": 5}},
    head="start: first\n",
    children={
        "inner": "params: {p: {}}\nreturns: [q]\nstart: calc\nnodes:\n"
        + script("calc", "done", "say", "q", "{{ p + 1 }}", output="q")
        + DONE
    },
)
SLEEP = Shape(
    "sleep",
    script("a", "nap", "say", "x", "1", output="x") + "  - {id: nap, type: wait, for: 40ms, next: watch}\n"
    "  - {id: watch, type: wait, poll: {script: scripts/do.sh, args: [look], every: 100ms, timeout: 60s}, next: b}\n"
    + script("b", "done", "say", "y", "2", output="y")
    + DONE,
    {"x": 1, "y": 2},
    head="start: a\n",
)
ASK = Shape(
    "ask",
    script("a", "q", "say", "x", "1", output="x")
    + "  - {id: q, type: ask, question: 'Go on with {{ x }}?', choices: ['yes', 'no'], next: b}\n"
    + script("b", "done", "say", "y", '"{{ q }}"', output="y")
    + DONE,
    {"x": 1, "q": "yes", "y": "yes"},
    head="start: a\n",
)
BIG = Shape(
    "big",
    script("rows", "file", "fill", "kept", "6000", output="kept")
    + script("file", "after", "fill", "huge", "1100000", output="huge")
    + script("after", "done", "say", "n", "{{ huge | length }}", output="n")
    + DONE,
    {"kept": "x" * 6000, "huge": "x" * 1_100_000, "n": 1_100_000},
    head="start: rows\n",
)
STOP = Shape("stop", CHAIN.nodes, CHAIN.context, head=CHAIN.head, stopped=True)
HOLD = Shape(
    "hold",
    script("a", "held", "say", "x", "1", output="x")
    + script("held", "b", "hold", "y", "2", output="y")
    + script("b", "done", "say", "z", "3", output="z")
    + DONE,
    {"x": 1, "y": 2, "z": 3},
    head="start: a\n",
)
CLING = Shape("cling", script("clings", "done", "cling", output="left") + DONE, {"left": 0}, head="start: clings\n")
HIDING = Shape("hiding", script("hides", "done", "hide", output="left") + DONE, {"left": 0}, head="start: hides\n")
DAEMON = Shape("daemon", script("forks", "done", "daemon", output="left") + DONE, {"left": 0}, head="start: forks\n")
LONG = Shape("long", LOOP.nodes.replace("'3'", "'60'"), {"n": 60, "last": 60}, head=LOOP.head)

SHAPES = {shape.name: shape for shape in (CHAIN, LOOP, RETRY, PARALLEL, MAP, NESTED, CALL, SLEEP, ASK, BIG, STOP)}
