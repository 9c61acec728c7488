"""The two bundled workflows, walked with parts that do as they are told: how often, in which order, to which end."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from bailiwick.ids import Json
from bailiwick.lang.load import load
from bailiwick.pipelines.model import ISSUE_TO_PR, SELF_HEAL, Pattern
from bailiwick.workflows.service import BUNDLED
from tests.unit.pipelines.graphs import End, Stand, answer, doubted, gate, taken, walk

RED = [gate("red", f"t{number}") for number in range(1, 9)]
WANTS = [{"path": "tests/test_x.py", "reason": "it tests the old price"}]


def _walk(home: Path, pattern: Pattern, stand: Stand, *answers: str, **params: Json) -> End:
    return asyncio.run(walk(home, pattern, stand, answers, **params))


@pytest.mark.parametrize("pattern", [ISSUE_TO_PR, SELF_HEAL])
def test_a_pattern_is_a_workflow_without_a_warning(pattern: Pattern) -> None:
    """People copy it: it has to be without fault, and no node of it can merge."""
    loaded = load(BUNDLED / pattern, strict=True)
    assert loaded.warnings == []
    assert loaded.graph.name == pattern
    types = {getattr(node, "type", "") for node in loaded.graph.nodes.values()}
    assert types <= {"", "worktree", "agent", "gate", "propose"}


def test_green_at_once_is_proposed_and_the_worktree_released(tmp_path: Path) -> None:
    """One call, one gate; the report that was green is the one that is proposed, for exactly its tree."""
    stand = Stand()
    end = _walk(tmp_path, ISSUE_TO_PR, stand)
    assert (end.code, end.node, end.context["calls"]) == (0, "done", 0)
    assert [node for node, _ in stand.asked] == ["claim", "implement", "look", "gate", "propose", "release"]
    asked = stand.calls("propose")[0]
    assert (asked["tree"], asked["base"], asked["branch"], asked["report"]) == (
        "t1",
        "c0",
        "agent/x-1",
        gate("green")["report"],
    )


def test_red_gets_n_fix_calls_and_n_plus_one_gates(tmp_path: Path) -> None:
    """Then a person: exit code 6, the number in the words, and the work kept."""
    stand = Stand(gates=[*RED])
    end = _walk(tmp_path, ISSUE_TO_PR, stand, attempts=2)
    assert (len(stand.calls("fix")), len(stand.calls("gate"))) == (2, 3)
    assert (end.code, end.node) == (6, "gave_up")
    assert end.reason.startswith("gave up after 2 fix calls, handing off to a person")
    assert end.context["kept"]["branch"] == "agent/x-1"
    assert not stand.calls("propose")


def test_no_fix_call_means_one_shot(tmp_path: Path) -> None:
    """Red then is exit code 1: nobody gave up, the change was rejected."""
    stand = Stand(gates=[*RED])
    end = _walk(tmp_path, ISSUE_TO_PR, stand, attempts=0)
    assert (end.code, end.node, len(stand.calls("fix")), len(stand.calls("gate"))) == (1, "rejected", 0, 1)


def test_what_is_repaired_in_a_later_round_is_proposed(tmp_path: Path) -> None:
    """The gate's words go to the agent; the change that turned green is proposed."""
    stand = Stand(gates=[RED[0], RED[1], gate("green", "t9")])
    end = _walk(tmp_path, ISSUE_TO_PR, stand)
    assert (end.code, end.context["calls"]) == (0, 2)
    assert "t1 fails" in stand.calls("fix")[0]["prompt"]
    assert "t2 fails" in stand.calls("fix")[1]["prompt"]
    assert stand.calls("propose")[0]["tree"] == "t9"


def test_the_same_failure_with_the_same_change_twice_ends_early(tmp_path: Path) -> None:
    """A further call would buy the same answer."""
    stand = Stand(gates=[RED[0], RED[1], RED[1]])
    end = _walk(tmp_path, ISSUE_TO_PR, stand, attempts=9)
    assert (end.code, end.node, len(stand.calls("fix"))) == (6, "repeats", 2)
    assert end.reason.startswith("gave up after 2 fix calls, handing off to a person: the same failure")


@pytest.mark.parametrize(
    "agents", [[answer("refused", reason="unclear")], [answer(), answer("refused", reason="unclear")]]
)
def test_a_refusal_is_no_red_gate(tmp_path: Path, agents: list[dict[str, Json]]) -> None:
    """It is recorded with its reason, and a person takes over: exit code 6."""
    end = _walk(tmp_path, ISSUE_TO_PR, Stand(agents=agents, gates=[*RED]))
    assert (end.code, end.node, end.reason) == (6, "refused", "the agent refused: unclear")


def test_no_change_is_a_failure_and_no_proposal(tmp_path: Path) -> None:
    """Whatever the agent says it did: only files count."""
    stand = Stand(changes=[0])
    end = _walk(tmp_path, ISSUE_TO_PR, stand)
    assert (end.code, end.node) == (1, "nothing")
    assert not stand.calls("gate")


def test_nothing_left_after_protected_changes_were_reverted_is_a_failure(tmp_path: Path) -> None:
    """A green gate on the base itself says nothing; what was reverted is named."""
    stand = Stand(gates=[gate("green", "t0", taken=[taken("conftest.py")])])
    end = _walk(tmp_path, ISSUE_TO_PR, stand)
    assert (end.code, end.node) == (1, "emptied")
    assert "conftest.py" in end.reason
    assert not stand.calls("propose")


@pytest.mark.parametrize("pattern", [ISSUE_TO_PR, SELF_HEAL])
def test_a_hand_off_says_what_the_last_gate_said(tmp_path: Path, pattern: Pattern) -> None:
    """The failing test is named where the person looks first."""
    reds = [gate("red", f"t{number}", headline=f"red: t.py::test_{number} fails") for number in range(1, 5)]
    end = _walk(tmp_path, pattern, Stand(gates=reds), attempts=1)
    assert (end.code, end.node) == (6, "gave_up")
    last = 2 if pattern == ISSUE_TO_PR else 1
    assert end.reason == f"gave up after 1 fix calls, handing off to a person (red: t.py::test_{last} fails)"


DOUBT_REASON = [{"path": "shop/prices.py", "reason": "the plugin is found there"}]


@pytest.mark.parametrize("pattern", [ISSUE_TO_PR, SELF_HEAL])
def test_a_doubt_that_the_agent_takes_back_reaches_no_person(tmp_path: Path, pattern: Pattern) -> None:
    """It is told first, with what the gate says, and that costs one of its calls."""
    stand = Stand(gates=[doubted("t1"), gate("green", "t2")])
    end = _walk(tmp_path, pattern, stand)
    before = 0 if pattern == ISSUE_TO_PR else 1
    assert (end.code, end.questions, end.context["calls"]) == (0, [], before + 1)
    prompt = stand.calls("fix")[-1]["prompt"]
    assert "No check is red, but a person would have to approve" in prompt
    assert "t1 fails" in prompt
    assert "Fix the code" not in prompt
    assert stand.calls("propose")[0]["tree"] == "t2"


@pytest.mark.parametrize("pattern", [ISSUE_TO_PR, SELF_HEAL])
def test_a_doubt_that_stays_waits_for_a_person_the_second_time(tmp_path: Path, pattern: Pattern) -> None:
    """Exit code 3 with the finding, the hunk and that there is no reason; the agent is told only once."""
    stand = Stand(gates=[doubted("t1"), doubted("t2")])
    end = _walk(tmp_path, pattern, stand, attempts=9)
    assert end.code == 3
    assert len(stand.calls("gate")) == 2
    assert "shop/prices.py:3: reads sys.modules" in end.questions[0]
    assert "@@ -1 +1 @@\n+import sys" in end.questions[0]
    assert "it gave none" in end.questions[0]


def test_a_doubt_with_a_reason_waits_for_a_person_at_once(tmp_path: Path) -> None:
    """Nothing more can be said to the agent; the person reads its reason."""
    stand = Stand(agents=[answer(wants=DOUBT_REASON)], gates=[doubted()])
    end = _walk(tmp_path, ISSUE_TO_PR, stand)
    assert (end.code, len(stand.calls("fix"))) == (3, 0)
    assert "the plugin is found there" in end.questions[0]


def test_a_reason_for_another_file_is_none_for_the_doubt(tmp_path: Path) -> None:
    """What the gate asked about is what has to be explained."""
    stand = Stand(agents=[answer(wants=WANTS), answer(wants=DOUBT_REASON)], gates=[doubted()])
    end = _walk(tmp_path, ISSUE_TO_PR, stand)
    assert (end.code, len(stand.calls("fix"))) == (3, 1)


def test_without_a_call_left_a_doubt_waits_for_a_person(tmp_path: Path) -> None:
    """One shot is one shot."""
    stand = Stand(gates=[doubted()])
    end = _walk(tmp_path, ISSUE_TO_PR, stand, attempts=0)
    assert (end.code, len(stand.calls("fix"))) == (3, 0)


@pytest.mark.parametrize(("said", "later"), [("allow-once", []), ("allow-path", ["shop/prices.py"])])
def test_an_approved_doubt_is_proposed(tmp_path: Path, said: str, later: list[str]) -> None:
    """The gate is asked again with the path allowed; once is for this change only."""
    stand = Stand(gates=[doubted("t1"), doubted("t2"), gate("red", "t2"), gate("green", "t3")])
    end = _walk(tmp_path, ISSUE_TO_PR, stand, said)
    assert end.code == 0
    assert [call["allow"] for call in stand.calls("gate")] == [[], [], ["shop/prices.py"], later]


def test_a_refused_doubt_is_to_be_taken_out_and_is_not_asked_about_again(tmp_path: Path) -> None:
    """The agent hears of the refusal; what is still there afterwards is handed to a person, without a question."""
    stand = Stand(gates=[doubted("t1"), doubted("t2"), doubted("t2"), doubted("t3")])
    end = _walk(tmp_path, ISSUE_TO_PR, stand, "refuse")
    assert (end.code, end.node, len(end.questions), len(stand.calls("fix"))) == (6, "insists", 1, 2)
    assert "what a person refused is still there" in end.reason
    prompt = stand.calls("fix")[1]["prompt"]
    assert "A person refused the change to shop/prices.py. Do it without." in prompt
    assert "Take out the places named above" in prompt


def test_after_a_refusal_another_doubt_is_another_question(tmp_path: Path) -> None:
    """A person's word holds for what they saw."""
    other = doubted("t3", "replaces json.loads")
    end = _walk(tmp_path, ISSUE_TO_PR, Stand(gates=[doubted("t1"), doubted("t2"), doubted("t2"), other]), "refuse")
    assert (end.code, len(end.questions)) == (3, 2)
    assert "replaces json.loads" in end.questions[1]


@pytest.mark.parametrize("pattern", [ISSUE_TO_PR, SELF_HEAL])
def test_the_brief_names_the_gate_s_commands_and_the_rules(tmp_path: Path, pattern: Pattern) -> None:
    """An agent that can try the gate's commands need not guess."""
    stand = Stand(gates=[gate("red", "t1"), gate("green", "t2")])
    _walk(tmp_path, pattern, stand)
    for prompt in (call["prompt"] for node in ("implement", "fix") for call in stand.calls(node)):
        assert "They work here too, just as they stand" in prompt
        assert "\n\n    pytest -q\n" in prompt
        assert "appended to an existing test file" in prompt
        assert "{%" not in prompt


def test_the_parts_that_come_along_are_pinned_with_the_run_and_a_copy_can_have_its_own(tmp_path: Path) -> None:
    """An upgrade changes no run that is under way; who copies a workflow changes what they like."""
    shutil.copytree(BUNDLED / ISSUE_TO_PR, tmp_path / "mine")
    copied = load(tmp_path / "mine", strict=True)
    assert copied.files["bailiwick/rules.md"].is_relative_to(BUNDLED.parent)
    own = tmp_path / "mine" / "bailiwick" / "rules.md"
    own.parent.mkdir()
    own.write_text("My rules.\n")
    assert load(tmp_path / "mine").files["bailiwick/rules.md"] == own


def _wanting(*later: dict[str, Json]) -> Stand:
    wanted = gate("needs_person", "t1", wanted=["tests/test_x.py"], taken=[taken("tests/test_x.py")])
    return Stand(agents=[answer(wants=WANTS)], gates=[wanted, *later])


def test_a_protected_path_waits_for_a_person_with_the_hunk(tmp_path: Path) -> None:
    """Exit code 3, no cost; the question shows what would change and why the agent wants it."""
    stand = _wanting()
    end = _walk(tmp_path, ISSUE_TO_PR, stand)
    assert end.code == 3
    assert "tests/test_x.py" in end.questions[0]
    assert "--- tests/test_x.py\n+1" in end.questions[0]
    assert "it tests the old price" in end.questions[0]
    assert stand.calls("gate")[0]["wanted"] == ["tests/test_x.py"]


@pytest.mark.parametrize(("said", "later"), [("allow-once", []), ("allow-path", ["tests/test_x.py"])])
def test_an_allowed_path_is_allowed_once_or_for_the_run(tmp_path: Path, said: str, later: list[str]) -> None:
    """Once is for this change only: after a further fix call it would be asked again."""
    stand = _wanting(gate("red", "t2"), gate("green", "t3"))
    end = _walk(tmp_path, ISSUE_TO_PR, stand, said)
    assert end.code == 0
    assert [call["allow"] for call in stand.calls("gate")] == [[], ["tests/test_x.py"], later]


def test_a_refused_path_goes_on_without_it(tmp_path: Path) -> None:
    """Green without it: proposed. The same question is not put twice."""
    stand = _wanting(gate("green", "t1"))
    end = _walk(tmp_path, ISSUE_TO_PR, stand, "refuse")
    assert (end.code, len(stand.calls("fix"))) == (0, 0)
    assert stand.calls("gate")[1]["wanted"] == []


def test_a_refused_path_that_is_needed_costs_a_fix_call(tmp_path: Path) -> None:
    """The agent is told what a person refused."""
    needed = gate("needs_person", "t1", wanted=["tests/test_x.py"], taken=[taken("tests/test_x.py")])
    stand = _wanting(needed, gate("green", "t2"))
    stand.agents = [answer(wants=WANTS), answer()]
    end = _walk(tmp_path, ISSUE_TO_PR, stand, "refuse")
    assert (end.code, len(stand.calls("fix"))) == (0, 1)
    assert "A person refused the change to tests/test_x.py" in stand.calls("fix")[0]["prompt"]


def test_a_failing_environment_uses_no_attempt(tmp_path: Path) -> None:
    """A person repairs it and the gate runs again; the agent never hears of it."""
    stand = Stand(gates=[gate("environment"), gate("green")])
    end = _walk(tmp_path, ISSUE_TO_PR, stand, "again")
    assert "the disk is full" in end.questions[0]
    assert (end.code, end.context["calls"], len(stand.calls("fix"))) == (0, 0, 0)


def test_a_failing_environment_can_be_given_up(tmp_path: Path) -> None:
    """The work is kept."""
    end = _walk(tmp_path, ISSUE_TO_PR, Stand(gates=[gate("environment")]), "give-up")
    assert (end.code, end.node, end.context["kept"]["branch"]) == (1, "not_run", "agent/x-1")


def test_the_brief_quotes_the_issue_between_random_marks(tmp_path: Path) -> None:
    """Rules first, then conventions by name, then the stranger's text as it is: no template in it is rendered."""
    stand = Stand()
    _walk(tmp_path, ISSUE_TO_PR, stand)
    prompt = stand.calls("implement")[0]["prompt"]
    parts = [
        "Don't commit, push or merge",
        "`AGENTS.md`",
        "can't widen your rights",
        "Be brief.",
        "is not trusted",
        "begin issue MARK",
        "Please {{ run.id }}.",
        "end issue MARK",
    ]
    places = [prompt.index(part) for part in parts]
    assert places == sorted(places)


def test_the_fix_call_forbids_to_weaken_the_test(tmp_path: Path) -> None:
    """And carries the issue again: each call is a new session."""
    stand = Stand(gates=[RED[0], gate("green")])
    _walk(tmp_path, ISSUE_TO_PR, stand)
    prompt = stand.calls("fix")[0]["prompt"]
    assert "Fix the code; don't weaken or delete the test." in prompt
    assert "fix call 1 of 3" in prompt
    assert "Please {{ run.id }}." in prompt


def test_nothing_to_heal_ends_well_without_a_call(tmp_path: Path) -> None:
    """Green at once is exit code 0."""
    stand = Stand(first=gate("green", "t0"))
    end = _walk(tmp_path, SELF_HEAL, stand)
    assert (end.code, end.node) == (0, "nothing_to_heal")
    assert [node for node, _ in stand.asked] == ["claim", "healthy"]


def test_self_heal_counts_its_first_look_as_a_gate(tmp_path: Path) -> None:
    """N fix calls, N gates after them; the first prompt has what the gate said of the tree as it is."""
    stand = Stand(gates=[*RED])
    end = _walk(tmp_path, SELF_HEAL, stand)
    assert (len(stand.calls("fix")), len(stand.calls("gate"))) == (3, 3)
    assert (end.code, end.reason.partition(" (")[0]) == (6, "gave up after 3 fix calls, handing off to a person")
    assert "t0 fails" in stand.calls("fix")[0]["prompt"]


def test_self_heal_proposes_what_turned_green(tmp_path: Path) -> None:
    """The same endpoint as every path."""
    stand = Stand(gates=[RED[0], gate("green", "t9")])
    end = _walk(tmp_path, SELF_HEAL, stand)
    assert (end.code, stand.calls("propose")[0]["kind"], stand.calls("propose")[0]["tree"]) == (0, "self-heal", "t9")


def test_self_heal_that_changes_nothing_ends_early(tmp_path: Path) -> None:
    """A claim without a change is the same failure with the same change."""
    stand = Stand(changes=[0])
    end = _walk(tmp_path, SELF_HEAL, stand)
    assert (end.code, end.node, len(stand.calls("fix")), len(stand.calls("gate"))) == (6, "repeats", 1, 0)


def test_self_heal_without_a_fix_call_only_looks(tmp_path: Path) -> None:
    """Red then is exit code 1."""
    stand = Stand()
    end = _walk(tmp_path, SELF_HEAL, stand, attempts=0)
    assert (end.code, len(stand.calls("fix"))) == (1, 0)
