"""The replay of routing policies: the same luck for all, the same numbers every time, charts that can be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.routing.plot import Chart, PlotLine, draw, ticks
from benchmarks.routing.policies import fixed, oracle, replay, strongest
from benchmarks.routing.recorded import cases_of, read_log
from benchmarks.routing.run import figures, main, over_time_charts
from benchmarks.routing.study import CHAIN, ORACLE, POLICIES, STRONGEST, compare, over_time, rows
from benchmarks.routing.world import RIGHT, SKILLS, Case, Try, World, cases

WORLD = World(seed=7, calls=600)


def _calls(world: World = WORLD) -> list[Case]:
    return list(cases(world))


def _entry(*attempts: tuple[str, str, float], tokens: int = 500) -> str:
    tried = [
        {"model": model, "verdict": verdict, "cost": cost, "duration_ms": 900, "tokens": {"input": tokens}}
        for model, verdict, cost in attempts
    ]
    return json.dumps({"skill": "tdd", "attempts": tried})


def test_the_same_seed_gives_the_same_replay_and_another_seed_another() -> None:
    """A number that can't be had again is no result."""
    first, again = (replay(fixed, _calls()) for _ in range(2))
    assert first == again
    assert first.costs != replay(fixed, _calls(World(seed=8, calls=600))).costs


def test_a_changed_verifier_leaves_what_models_can_do_alone() -> None:
    """Policies and worlds are compared on the same luck."""
    plain, cheap = _calls(), _calls(World(seed=7, calls=600, verifier="claude-haiku-4-5"))
    for one, other in zip(plain, cheap, strict=True):
        assert [t.right for t in one.tries.values()] == [t.right for t in other.tries.values()]
        assert sum(t.cost for t in one.tries.values()) >= sum(t.cost for t in other.tries.values())


def test_models_are_right_as_often_as_the_table_says() -> None:
    """The world is the one that is documented."""
    found = [case.tries["claude-sonnet-4-6"].right for case in _calls(World(calls=4_000))]
    shares = (0.5, 0.4, 0.1)
    wanted = sum(share * right for share, right in zip(shares, RIGHT["claude-sonnet-4-6"], strict=True))
    assert sum(found) / len(found) == pytest.approx(wanted, abs=0.02)


def test_half_way_models_are_swapped() -> None:
    """A name says nothing about tomorrow: whoever tunes a chain by its record has to look again."""
    model = SKILLS["tdd"].chain[0]
    right = [case.tries[model].right for case in _calls(World(calls=6_000)) if case.skill == "tdd"]
    half = len(right) // 2
    assert sum(right[:half]) / half > sum(right[half:]) / half + 0.1


def test_nobody_is_cheaper_or_more_often_right_than_the_oracle() -> None:
    """Regret must never be negative."""
    calls = _calls()
    best = replay(oracle, calls)
    for policy in (strongest, fixed):
        done = replay(policy, calls)
        assert done.cost >= best.cost
        assert done.right <= best.right


def test_a_walk_pays_for_every_try_up_to_the_accepted_one() -> None:
    """Failed tries are what routing is about."""
    tries = {
        "a": Try(False, "escalate", 1.0, 0.5, 1.0),
        "b": Try(True, "accept", 2.0, 0.5, 1.0),
        "claude-c": Try(True, "accept_unverified", 9.0, 0.0, 1.0),
    }
    case = Case("x", "tdd", 100, tries)
    assert (fixed(case).cost, strongest(case).cost, oracle(case).cost) == (4.0, 9.0, 2.0)
    assert list(fixed(case).models) == ["a", "b"]


def test_a_chain_saves_money_and_keeps_what_is_wanted() -> None:
    """The claim of the page, on a small scale; the figures are in docs/routing."""
    found = compare(World(calls=1_500), [1], lambda _text: None)
    assert found[CHAIN].saved.middle > 40
    assert found[CHAIN].kept.middle > 98.5
    assert found[STRONGEST].saved.middle == 0
    saved, kept = figures(found)
    assert (saved.bound, kept.bound) == (60, 99)
    assert f"{found[ORACLE].saved.middle - found[CHAIN].saved.middle:.3g} points below the oracle" in saved.note


def test_a_log_is_replayed_with_what_was_not_tried_drawn_from_its_like(tmp_path: Path) -> None:
    """A recorded call knows only the tiers it reached."""
    log = tmp_path / "s1.jsonl"
    lines = [
        _entry(("ollama/a", "accept", 0.1)),
        _entry(("ollama/a", "escalate", 0.1), ("claude-b", "accept_unverified", 1.0)),
        '{"skill": "tdd", "attem',
    ]
    log.write_text("\n".join(lines))
    found = list(cases_of(read_log(log), false_accept=0.0))
    assert [list(case.tries) for case in found] == [["ollama/a", "claude-b"]] * 2
    assert found[0].tries["claude-b"].cost == 1.0
    assert [case.tries["ollama/a"].right for case in found] == [True, False]
    assert found == list(cases_of(read_log(log), false_accept=0.0))
    assert found[0].size == 2_000


def test_the_command_replays_a_log_and_writes_its_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """People replay their own record before they change a chain."""
    log, out = tmp_path / "s1.jsonl", tmp_path / "out.json"
    log.write_text("\n".join([_entry(("ollama/a", "escalate", 0.1), ("claude-b", "accept_unverified", 1.0))] * 30))
    assert main(["--log", str(log), "--json", str(out)]) == 0
    assert set(json.loads(out.read_text())["policies"]) == set(POLICIES)
    assert "| the chain | -10.0 % | 100.0 % | 2 |" in capsys.readouterr().out
    log.write_text("")
    assert main(["--log", str(log)]) == 2


def test_over_time_ends_where_the_replay_ends() -> None:
    """The plot and the table must tell the same story."""
    calls = _calls()
    course = over_time(calls, points=10)
    base, ours = replay(strongest, calls), replay(fixed, calls)
    assert course[CHAIN].calls[-1] == 600
    assert course[CHAIN].ahead[-1] == ours.right - base.right
    assert course[ORACLE].regret[-1] == 0
    assert rows([{STRONGEST: base, "fixed": ours}])["fixed"].kept.middle == pytest.approx(100 * ours.right / base.right)
    assert len(over_time_charts(course)[0].lines) == len(POLICIES) - 1


def _texts(drawn: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]


def test_a_chart_is_a_document_that_names_its_lines_and_its_mark() -> None:
    """Colour alone tells nothing to many readers."""
    chart = Chart(
        "A < B", "calls", "money", [PlotLine("x", [(0, 0), (10, 5)]), PlotLine("y", [(0, 1), (10, 5)])], (3, "wanted")
    )
    drawn = draw([chart, chart])
    assert drawn == draw([chart, chart])
    texts = _texts(drawn)
    assert {"A < B", "calls", "money", "x", "y", "wanted"} <= set(texts)
    assert "background" not in drawn


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (95.5, 101.2, [96, 97, 98, 99, 100, 101]),
        (0, 0.3, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]),
    ],
)
def test_axes_have_round_numbers(low: float, high: float, wanted: Sequence[float]) -> None:
    """Nobody reads 17.3 off an axis."""
    assert ticks(low, high) == pytest.approx(wanted)
