"""What a dry run found: which nodes and edges some pass went through, which not and why, and each pass's way. Pure."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

from bailiwick.ids import Json

PATH_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Way:
    """One edge: from a node, by a label (empty for `next`), to a node. `why` says what kept it from being taken."""

    node: str
    label: str
    target: str
    covered: bool = True
    why: str = ""

    def to_json(self) -> dict[str, Json]:
        """The edge and why no pass took it."""
        return {"node": self.node, "label": self.label, "target": self.target, "why": self.why}


@dataclass(frozen=True, slots=True)
class DryRunPass:
    """One walk. `outcome` is done, fail (a `fail` node), failed (a node failed unhandled) or cut (a limit was met)."""

    aim: str
    outcome: str
    node: str
    reason: str
    path: tuple[str, ...]
    steps: int

    @property
    def ended(self) -> bool:
        """Whether it came to a `terminal` or `fail` node."""
        return self.outcome in ("done", "fail")


@dataclass(frozen=True, slots=True)
class DryRunReport:
    """The whole dry run."""

    workflow: str
    nodes: dict[str, bool]
    ways: tuple[Way, ...]
    passes: tuple[DryRunPass, ...]
    warnings: tuple[str, ...] = ()
    limits: tuple[str, ...] = field(default=())

    @property
    def exit_code(self) -> int:
        """0 if some pass came to an end of the workflow, else 1."""
        return 0 if any(p.ended for p in self.passes) else 1

    def to_json(self) -> dict[str, Json]:
        """The report as one JSON document."""
        return {
            "workflow": self.workflow,
            "exit_code": self.exit_code,
            "nodes": {"total": len(self.nodes), "covered": sum(self.nodes.values()), "missed": self.missed_nodes()},
            "edges": {
                "total": len(self.ways),
                "covered": sum(way.covered for way in self.ways),
                "missed": [way.to_json() for way in self.ways if not way.covered],
            },
            "passes": [
                {
                    "aim": p.aim,
                    "outcome": p.outcome,
                    "node": p.node,
                    "reason": p.reason,
                    "steps": p.steps,
                    "path": list(p.path[:PATH_SHOWN]),
                    "cut": max(len(p.path) - PATH_SHOWN, 0),
                }
                for p in self.passes
            ],
            "warnings": list(self.warnings),
            "limits": list(self.limits),
        }

    def missed_nodes(self) -> list[str]:
        """The nodes that no pass came to, in the order of the file."""
        return [name for name, covered in self.nodes.items() if not covered]

    def text(self, width: int = 80) -> str:
        """The report for people, in lines of at most `width` characters."""
        width = max(width, 40)
        nodes, ways = sum(self.nodes.values()), sum(way.covered for way in self.ways)
        out = [
            f"{self.workflow}: dry run, nothing was executed",
            f"nodes  {nodes} of {len(self.nodes)} covered",
            f"edges  {ways} of {len(self.ways)} covered",
            "",
        ]
        out += [line for number, found in enumerate(self.passes, 1) for line in _pass_lines(number, found, width)]
        missed = self.missed_nodes()
        if missed:
            out += ["", "not reached:", *(f"  {name}" for name in missed)]
        open_ways = [way for way in self.ways if not way.covered]
        if open_ways:
            out += ["", "edges not taken:"]
            out += [line for way in open_ways for line in (f"  {_named(way)}", *_wrapped(way.why, "      ", width))]
        for title, notes in (("warnings:", self.warnings), ("limits:", self.limits)):
            if notes:
                out += ["", title, *(line for note in notes for line in _wrapped(note, "  ", width))]
        return "\n".join(_cut(line, width) for line in out) + "\n"


def _named(way: Way) -> str:
    return f"{way.node} ─ {way.label} → {way.target}" if way.label else f"{way.node} → {way.target}"


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _pass_lines(number: int, found: DryRunPass, width: int) -> list[str]:
    mark = "✓" if found.outcome == "done" else "■" if found.outcome == "fail" else "✗"
    end = {
        "done": f"ends at {found.node}",
        "fail": f"ends at {found.node} (fail)",
        "failed": f"fails at {found.node}",
        "cut": f"cut off at {found.node}",
    }[found.outcome]
    words = f"{mark} {number:>3}  {end}, {len(found.path)} steps" + (f"  · {found.aim}" if found.aim else "")
    shown = [words, *_wrapped(" → ".join(_folded(found.path)), " " * 7, width)]
    return [*shown, *_wrapped(found.reason, " " * 7, width)] if found.reason and found.outcome != "done" else shown


def _folded(path: tuple[str, ...]) -> list[str]:
    """A path that fits on a line: its beginning and its end."""
    return list(path) if len(path) <= 12 else [*path[:6], f"… {len(path) - 11} more …", *path[-5:]]


def _cut(line: str, width: int) -> str:
    shown = "".join(c if c.isprintable() else "\ufffd" for c in line)
    return shown if len(shown) <= width else shown[: width - 1].rstrip() + "…"
