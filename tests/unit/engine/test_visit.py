"""What a visit asks for is fixed when it begins: nothing that changes outside changes what the journal decides."""

from __future__ import annotations

from dataclasses import asdict, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bailiwick.engine import events as ev
from bailiwick.engine import graph as g
from bailiwick.engine.render import Rendered
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.engine.rules import Rules
from bailiwick.ids import Json
from bailiwick.lang.templates import Templates
from bailiwick.testing.driver import Answer, Driver

RENDERER = Templates(None)
CLASSES = ("rate_limited", "overloaded", "crash", "bad_output", "cap", "empty", "timeout", "rejected", "overflow")


class FilesAndSettings:
    """Files and settings; with `moving` somebody edits all of them after each attempt."""

    def __init__(self, *, moving: bool) -> None:
        self.moving = moving
        self.edits = 0

    def edit(self) -> None:
        """Change everything there is to change."""
        self.edits += self.moving

    def prepare(self, node: g.Node, lookup: object) -> Rendered:
        """A request as the files and settings of now would make it."""
        return Rendered({"node": node.id, "chain": ["a", "b"], "edits": self.edits})

    def policy(self, _node: g.Work) -> RetryPolicy:
        """The knobs as configured now."""
        base = RetryPolicy(models=2, max_attempts=6, reserve_usd=1.0)
        if not self.edits:
            return base
        return replace(base, models=1 + self.edits % 3, max_invoke_retries=0, max_attempts=1, cap_default_wait=7.0)


def _driver(world: FilesAndSettings, results: list[str], graph: g.Graph) -> Driver:
    def oracle(started: ev.EffectStarted) -> Answer:
        world.edit()
        index = started.attempt - 1
        if index >= len(results):
            return {"x": 1}
        return ev.Failure(results[index], "it failed", {"evidence": results[index], "session": "s"})

    driver = Driver(graph, RENDERER, oracle, answer=lambda _wait: "fail")
    driver.rules = Rules(RENDERER, world.prepare, policy=world.policy)
    return driver


def _told(driver: Driver) -> list[tuple[str, dict[str, Json]]]:
    return [(type(event).__name__, asdict(event)) for _, _, event in driver.journal]


AGENT = g.Graph(
    name="w",
    start="ask",
    nodes={
        "ask": g.Work(id="ask", type="agent", next="done", on_exhausted="fail", on_error="done"),
        "done": g.End(id="done"),
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(results=st.lists(st.sampled_from(CLASSES), max_size=8), cut=st.integers(1, 60))
def test_no_file_or_setting_changes_a_begun_visit(results: list[str], cut: int) -> None:
    """Change everything between two attempts, crash in between too: the same attempts, pauses and end."""
    still = _driver(FilesAndSettings(moving=False), results, AGENT)
    still.create()
    still.run()
    moving = _driver(FilesAndSettings(moving=True), results, AGENT)
    moving.create()
    moving.run(stop_after=min(cut, len(still.journal)))
    after = moving
    if moving.state.status == "running" and not moving.state.flights():
        after = moving.crash(len(moving.journal))
        after.rules = moving.rules
    after.run()
    assert _told(after) == _told(still)


def test_the_journal_keeps_what_a_visit_asks_for_once() -> None:
    """The first attempt of a visit writes it; the next visit asks for something of its own."""
    driver = _driver(FilesAndSettings(moving=True), ["bad_output", "bad_output"], AGENT)
    driver.create()
    driver.run()
    assert [event.request and event.request["edits"] for event in driver.started] == [0, None, None]
    assert [bool(event.policy) for event in driver.started] == [True, False, False]
