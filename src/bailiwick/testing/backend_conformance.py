# ruff: noqa: S101 - a conformance suite asserts
"""What every agent backend has to pass: inherit `BackendConformance` in a test class and say how to get an agent."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from bailiwick.agents.launch import Launcher
from bailiwick.agents.port import (
    AgentEvent,
    Answered,
    Backend,
    Compacted,
    LimitSeen,
    ProcessEnded,
    Said,
    SessionKnown,
    ToolBegan,
    ToolEnded,
    Trouble,
    Turn,
    Used,
)
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.processes.children import find_children
from bailiwick.processes.proc import EFFECT_MARK

Behaviour = Literal["answers", "fails", "hangs", "garbage"]
PATIENT = TurnTimeouts(60.0, 60.0)
PROMPTS = {
    "templates": "{prompt} {{ x }} {% raw %} {0} %s $HOME `id` $(id)",
    "quotes": 'it\'s "quoted" \\ and \\n escaped; & | > < * ? # !',
    "a flag": "--help -p --version\n-x",
    "a command": "/help me",
    "unicode": "Grüße 漢字 🙂 \u202e\u0000\u2028 e\u0301",
    "lines": "one\r\ntwo\n\n\n  three  \n",
    "a megabyte": "äx\n" * 262_144,
}


@dataclass(frozen=True, slots=True)
class BackendCase:
    """A backend and a turn that its agent answers as the test wants."""

    backend: Backend
    turn: Turn


class BackendConformance:
    """Every promise of `bailiwick.agents.port.Backend`.

    An agent that `answers` gives the SHA-256 of its prompt in hex where `echoes` is set, anything else where it isn't.
    """

    echoes = True
    spawns = True

    def bench(self, tmp_path: Path, behaviour: Behaviour) -> BackendCase:
        """A backend whose agent behaves so. Temporary files belong into `tmp_path / "tmp"`."""
        raise NotImplementedError

    def test_an_answer_is_the_last_word(self, tmp_path: Path) -> None:
        """Whoever reads the events takes the last one for the outcome."""
        events = self._play(self.bench(tmp_path, "answers"))
        assert isinstance(events[-1], Answered)
        assert _endings(events) == [events[-1]]

    def test_a_failure_is_an_event_and_no_exception(self, tmp_path: Path) -> None:
        """Foreign exceptions stop at the port."""
        events = self._play(self.bench(tmp_path, "fails"))
        assert isinstance(events[-1], Trouble | ProcessEnded)
        assert _endings(events) == [events[-1]]

    def test_garbage_is_survived(self, tmp_path: Path) -> None:
        """An agent may print anything; the turn still ends once."""
        events = self._play(self.bench(tmp_path, "garbage"))
        assert _endings(events) == [events[-1]]

    def test_a_cancel_ends_a_hanging_turn_and_leaves_nobody(self, tmp_path: Path) -> None:
        """`stop --now` is for exactly this."""
        bench = self.bench(tmp_path, "hangs")
        events = self._play(bench, cancel=True)
        assert isinstance(events[-1], ProcessEnded)
        assert events[-1].why == "cancelled"
        assert _endings(events) == [events[-1]]
        assert find_children(_marks(bench)) == []

    def test_the_silence_clock_ends_a_hanging_turn(self, tmp_path: Path) -> None:
        """And says that it was it."""
        if not self.spawns:
            pytest.skip("the launcher's clocks watch programs only")
        events = self._play(self.bench(tmp_path, "hangs"), TurnTimeouts(0.5, 60.0))
        assert isinstance(events[-1], ProcessEnded)
        assert events[-1].why == "silence"

    @pytest.mark.parametrize("prompt", PROMPTS.values(), ids=list(PROMPTS))
    def test_a_prompt_arrives_as_it_is(self, tmp_path: Path, prompt: str) -> None:
        """It is data: not a template, not a shell line, not a flag, and of any length."""
        if not self.echoes:
            pytest.skip("this agent does not say what it was asked")
        bench = self.bench(tmp_path, "answers")
        events = self._play(BackendCase(bench.backend, replace(bench.turn, prompt=prompt)))
        assert _answer(events) == _digest(prompt)

    def test_turns_at_the_same_time_do_not_mix(self, tmp_path: Path) -> None:
        """One backend serves every node of a run."""
        bench = self.bench(tmp_path, "answers")
        turns = [replace(bench.turn, prompt=f"prompt {number}", key=f"key-{number}") for number in range(3)]

        async def go() -> list[list[AgentEvent]]:
            return await asyncio.gather(
                *(_ask(BackendCase(bench.backend, turn), PATIENT, cancel=False) for turn in turns)
            )

        answers = [_answer(events) for events in asyncio.run(go())]
        assert answers == [_digest(turn.prompt) for turn in turns] if self.echoes else len(answers) == len(turns)

    def test_a_session_is_named_and_can_be_resumed(self, tmp_path: Path) -> None:
        """Where the backend says that it can; where it can't it must not name one."""
        bench = self.bench(tmp_path, "answers")
        sessions = _sessions(self._play(bench))
        if not bench.backend.capabilities.resume:
            assert sessions == set()
            return
        (session,) = sessions
        events = self._play(BackendCase(bench.backend, replace(bench.turn, session=session, attempt=2)))
        assert isinstance(events[-1], Answered)
        assert _sessions(events) == {session}

    def test_a_session_can_be_made_shorter(self, tmp_path: Path) -> None:
        """Where the backend says that it can."""
        bench = self.bench(tmp_path, "answers")
        if not bench.backend.capabilities.compact:
            pytest.skip("this backend can't compact")
        (session,) = _sessions(self._play(bench))
        turn = replace(bench.turn, session=session)
        events: list[AgentEvent] = []

        async def go() -> None:
            with Launcher(PATIENT, asyncio.Event(), marks=_marks(bench)) as launcher:
                await bench.backend.compact(turn, launcher, launcher.watching(events.append))

        asyncio.run(go())
        assert isinstance(events[-1], Compacted)
        assert events[-1].ok

    def test_a_check_is_one_line_and_asks_nobody(self, tmp_path: Path) -> None:
        """It is made for `doctor`, before anything is spent."""
        bench = self.bench(tmp_path, "answers")

        async def go() -> tuple[bool, str]:
            with Launcher(PATIENT, asyncio.Event()) as launcher:
                return await bench.backend.check(bench.turn.env, launcher)

        usable, words = asyncio.run(go())
        assert usable
        assert words
        assert "\n" not in words

    @pytest.mark.parametrize("behaviour", ["answers", "fails"])
    def test_no_temporary_file_is_left(self, tmp_path: Path, behaviour: Behaviour) -> None:
        """Prompts hold what nobody else should read."""
        self._play(self.bench(tmp_path, behaviour))
        folder = tmp_path / "tmp"
        assert not folder.exists() or list(folder.iterdir()) == []

    @pytest.mark.parametrize("behaviour", ["answers", "fails", "garbage"])
    def test_the_same_turn_again_ends_the_same_way(self, tmp_path: Path, behaviour: Behaviour) -> None:
        """A backend keeps nothing from one turn to the next."""
        bench = self.bench(tmp_path, behaviour)
        assert self._play(bench)[-1] == self._play(bench)[-1]

    @pytest.mark.parametrize("behaviour", ["answers", "fails"])
    def test_amounts_are_amounts_or_unknown(self, tmp_path: Path, behaviour: Behaviour) -> None:
        """Unknown is not zero, and nothing costs less than nothing."""
        for event in self._play(self.bench(tmp_path, behaviour)):
            if isinstance(event, Used):
                amounts = (event.input, event.output, event.cached, event.usd)
                assert all(amount is None or amount >= 0 for amount in amounts)

    def _play(self, bench: BackendCase, clocks: TurnTimeouts = PATIENT, *, cancel: bool = False) -> list[AgentEvent]:
        return asyncio.run(_ask(bench, clocks, cancel=cancel))


async def _ask(bench: BackendCase, clocks: TurnTimeouts, *, cancel: bool) -> list[AgentEvent]:
    """The events of a turn; with `cancel` it is cancelled half a second after it began."""
    stop = asyncio.Event()
    events: list[AgentEvent] = []
    timer = asyncio.get_running_loop().call_later(0.5, stop.set) if cancel else None
    with Launcher(clocks, stop, marks=_marks(bench)) as launcher:
        await bench.backend.turn(bench.turn, launcher, launcher.watching(events.append))
    if timer is not None:
        timer.cancel()
    assert all(isinstance(event, KNOWN) for event in events)
    return events


KNOWN = (Said, ToolBegan, ToolEnded, Used, SessionKnown, LimitSeen, Trouble, Answered, ProcessEnded)


def _marks(bench: BackendCase) -> dict[str, str]:
    return {EFFECT_MARK: f"{bench.turn.key}-{id(bench):x}"}


def _endings(events: list[AgentEvent]) -> list[AgentEvent]:
    return [
        event
        for event in events
        if isinstance(event, Answered | ProcessEnded) or (isinstance(event, Trouble) and event.final)
    ]


def _sessions(events: list[AgentEvent]) -> set[str]:
    return {event.id for event in events if isinstance(event, SessionKnown)}


def _answer(events: list[AgentEvent]) -> str:
    assert isinstance(events[-1], Answered), events[-1]
    return events[-1].text.strip()


def _digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode()).hexdigest()
