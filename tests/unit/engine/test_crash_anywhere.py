"""The promise of the product, on the pure engine: a crash anywhere changes nothing that matters."""

from __future__ import annotations

import hashlib
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bailiwick.engine import events as ev
from bailiwick.engine.evolve import replay
from bailiwick.engine.graph import Graph
from bailiwick.engine.state import Phase
from bailiwick.ids import Json
from bailiwick.lang.templates import Templates
from bailiwick.testing.driver import Answer, Driver
from tests.unit.engine.flows import workflows

RENDERER = Templates(None)
SLOW = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _oracle(seed: int) -> object:
    """Effects whose result is a function of where they stand: about a fifth fail, polls are ready at the third look."""

    def answer(started: ev.EffectStarted) -> Answer:
        if started.node.startswith("poll"):
            return {} if started.ordinal >= 3 else ev.Failure("not_yet", "not yet")
        text = f"{seed}:{started.scope}:{started.node}:{started.visit}:{started.attempt}"
        number = hashlib.sha256(text.encode()).digest()[0]
        if number < 50:
            return ev.Failure("exit", f"failed at attempt {started.attempt}")
        return {"abc"[number % 3]: number % 4}

    return answer


def _answers(wait: ev.WaitOpened) -> Json:
    if wait.kind == "child":
        return {"status": "done", "outputs": {"x": 1}} if wait.id < "8" else {"status": "failed", "reason": "no"}
    return "yes"


def driver_of(flow: Graph, seed: int, pick: object = None) -> Driver:
    """A walk of a workflow whose effects end as `seed` says."""
    driver = Driver(flow, RENDERER, _oracle(seed), answer=_answers)  # type: ignore[arg-type]
    if pick is not None:
        driver.pick = pick  # type: ignore[assignment]
    return driver


@SLOW
@given(flow=workflows(), seed=st.integers(0, 1000), data=st.data())
def test_a_crash_anywhere_changes_nothing_that_matters(flow: Graph, seed: int, data: st.DataObject) -> None:
    """Cut the journal anywhere, several times, and go on: same verdict, no finished effect again, same keys."""
    whole = driver_of(flow, seed)
    whole.create()
    whole.run()
    driver = whole
    for _ in range(data.draw(st.integers(1, 3), label="crashes")):
        keep = data.draw(st.integers(1, len(driver.journal)), label="cut")
        finished = {(e.key, a) for e, a in _finished(driver.journal[:keep])}
        open_keys = {e.key for e in _open(driver.journal[:keep])}
        again = driver.crash(keep)
        before = len(again.started)
        again.run()
        later = again.started[before:]
        assert not {(e.key, e.attempt) for e in later} & finished, "a finished attempt ran again"
        entered = Counter(e.key for e in later if e.entry > 1)
        assert set(entered) <= open_keys, "only what was cut off is entered again"
        assert all(n == 1 for n in entered.values()), "once per crash"
        driver = again
    assert driver.verdict() == whole.verdict()


@SLOW
@given(flow=workflows(), seed=st.integers(0, 1000), picks=st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_timing_does_not_change_results(flow: Graph, seed: int, picks: list[int]) -> None:
    """Whichever effect of a fan-out ends first, the results are the same, unless fail_fast cuts siblings short."""
    if any(getattr(node, "fail_fast", False) for node in flow.nodes.values()):
        return
    first = driver_of(flow, seed)
    first.create()
    first.run()
    turn = iter(picks * 1000)
    second = driver_of(flow, seed, lambda _count: next(turn))
    second.create()
    second.run()
    assert second.verdict() == first.verdict()


@SLOW
@given(flow=workflows(), seed=st.integers(0, 1000))
def test_replay_gives_the_state_that_was_walked(flow: Graph, seed: int) -> None:
    """The state folded from the journal is the state of the walk, at the end and in the middle."""
    driver = driver_of(flow, seed)
    driver.create()
    driver.run()
    folded = replay(driver.journal, lambda _digest: flow)
    assert folded.context() == driver.state.context()
    assert (folded.status, folded.steps, folded.wall) == (driver.state.status, driver.state.steps, driver.state.wall)


@SLOW
@given(flow=workflows(), seed=st.integers(0, 1000), cut=st.integers(1, 80))
def test_the_scopes_that_live_are_known_without_searching(flow: Graph, seed: int, cut: int) -> None:
    """At any time: exactly those that are neither over nor waiting for a place, in the order they came to be."""
    driver = driver_of(flow, seed)
    driver.create()
    driver.run(stop_after=cut)
    over = (Phase.ENDED, Phase.PENDING, Phase.FAILED)
    assert driver.state.live() == [scope for scope in driver.state.scopes.values() if scope.phase not in over]


@SLOW
@given(flow=workflows(), seed=st.integers(0, 1000))
def test_effect_keys_are_never_shared(flow: Graph, seed: int) -> None:
    """Two different effects never have one key; attempts of one effect always do."""
    driver = driver_of(flow, seed)
    driver.create()
    driver.run()
    places: dict[str, tuple[str, str, int, int]] = {}
    for e in driver.started:
        assert places.setdefault(e.key, (e.scope, e.node, e.visit, e.ordinal)) == (e.scope, e.node, e.visit, e.ordinal)
    assert len(places) == len(set(places.values()))


def _finished(journal: list[tuple[int, float, ev.Event]]) -> list[tuple[ev.EffectFinished, int]]:
    attempts: dict[str, int] = {}
    out = []
    for _, _, event in journal:
        if isinstance(event, ev.EffectStarted):
            attempts[event.key] = event.attempt
        elif isinstance(event, ev.EffectFinished):
            out.append((event, attempts[event.key]))
    return out


def _open(journal: list[tuple[int, float, ev.Event]]) -> list[ev.EffectStarted]:
    running: dict[str, ev.EffectStarted] = {}
    for _, _, event in journal:
        if isinstance(event, ev.EffectStarted):
            running[event.key] = event
        elif isinstance(event, ev.EffectFinished):
            running.pop(event.key, None)
    return list(running.values())
