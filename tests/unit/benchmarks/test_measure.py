"""The rules of measuring: medians, and turns that treat all contenders alike."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import Bench, Reading, Spread, column, environment


def test_a_spread_is_the_median_between_the_least_and_the_most() -> None:
    """One slow round must not move the number that is held against a target."""
    assert Spread.of([3.0, 1.0, 100.0], 10) == Spread(30.0, 10.0, 1000.0)


def test_every_round_begins_with_another_contender(tmp_path: Path) -> None:
    """Whoever always comes first always has the warm or the cold machine."""
    order: list[str] = []

    def part(name: str) -> Reading:
        order.append(name)
        return {"seconds": float(len(order))}

    bench = Bench(tmp_path, quick=False, say=lambda _text: None)
    found = bench.in_turn({"a": lambda: part("a"), "b": lambda: part("b"), "c": lambda: part("c")}, 3)
    assert order == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    assert column(found["a"], "seconds") == [1.0, 6.0, 8.0]


def test_a_smoke_run_takes_the_small_sizes(tmp_path: Path) -> None:
    """It has to end within a minute."""
    assert Bench(tmp_path, quick=True, say=lambda _text: None).pick(10_000, 10) == 10
    assert Bench(tmp_path, quick=False, say=lambda _text: None).pick(10_000, 10) == 10_000


def test_contenders_run_without_settings_of_the_person() -> None:
    """A variable that forbids bytecode would double every start-up time."""
    assert not [name for name in environment() if name.startswith(("PYTHON", "BAILIWICK"))]
