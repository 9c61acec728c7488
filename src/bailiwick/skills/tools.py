"""Every tool there is, said once: the command line and the MCP server both read this table."""

from __future__ import annotations

from collections.abc import Iterable

from bailiwick.errors import InternalBug
from bailiwick.skills.arguments import bad_arguments, given
from bailiwick.skills.model import Argument, Hints, Skill, Tool
from bailiwick.skills.schemas import input_schema, output_schema

__all__ = [
    "RUN_TOOLS", "TABLE", "USUAL", "bad_arguments", "find_tool", "given", "input_schema", "output_schema", "tool_of",
    "tools_for",
]  # fmt: skip

_READS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
_ASKS = Hints(read_only=True, destructive=False, idempotent=True, open_world=True)
_ADDS = Hints(read_only=False, destructive=False, idempotent=False, open_world=True)
_CHANGES = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
_FILES_A_NOTE = Hints(read_only=False, destructive=False, idempotent=False, open_world=False)
_ENDS = Hints(read_only=False, destructive=True, idempotent=True, open_world=False)

_ROOT = Argument("project_root", "path", "The project's directory.", required=True)
_SCOPE = Argument("project_root", "path", "The project whose notes count besides the general ones.")
_TEST_CMD = Argument("test_cmd", "text", "The command that runs the tests, such as `pytest -q`.", required=True)
_TEST_PATH = Argument("test_path", "path", "The test file, relative to the project.", required=True)
_IMPL_PATH = Argument("impl_path", "path", "The file to improve, relative to the project.", required=True)
_CONTEXT = Argument("context", "text", "Anything else worth knowing.")
_RUN = Argument("run_id", "text", "The id that run_start gave.", required=True)
_LOGGED = Argument("session_id", "id", "The session whose call log is read.", required=True)

_TDD = (
    Tool(
        "tdd_red", "Write a failing test",
        "Writes one test for a behaviour that does not exist yet, runs it, and proves that it fails for the right "
        "reason: an assertion or a missing symbol, not a broken test. Tests that exist stay. Use it before any product "
        'code is written, for a feature or a bug: "write a test for", "test first", "fix this bug".',
        (_ROOT, Argument("spec", "text", "The behaviour that the test has to demand.", required=True), _TEST_CMD),
        "tdd", "red", _ADDS, writes=True,
    ),
    Tool(
        "tdd_green", "Make a failing test pass",
        "Writes the least code that makes the test pass. The tests themselves stay as they are; that is checked. Use "
        'it after tdd_red, or where a test fails and the behaviour is wanted: "make this test pass", "implement".',
        (_ROOT, _TEST_PATH, _TEST_CMD),
        "tdd", "green", _CHANGES, writes=True, files=("test_path",),
    ),
    Tool(
        "tdd_refactor", "Refactor under green tests",
        "Improves the code behind a test without changing what it does; all tests pass before and after, and no public "
        'name is lost. Use it when tests are green: "clean up", "simplify", "split this function".',
        (_ROOT, _TEST_PATH, _IMPL_PATH, _TEST_CMD),
        "tdd", "refactor", _CHANGES, writes=True, files=("test_path", "impl_path"),
    ),
)  # fmt: skip

_THINKING = (
    Tool(
        "review", "Review files",
        "Finds faults in files: each has a file, a line and a severity, and each reference was checked to exist. Use "
        'it before a change is proposed or merged: "review this", "check my change", "is this safe".',
        (_ROOT, Argument("files", "paths", "The files to review, relative to the project.", required=True), _CONTEXT),
        "review", "review", _ASKS, files=("files",),
    ),
    Tool(
        "debug", "Find a root cause",
        "From an error to a reproduction, hypotheses, evidence, the root cause and a proposed fix. Changes nothing. "
        'Use it before any fix is tried: "it fails", "it crashes", "it is flaky", "why does this happen".',
        (_ROOT, Argument("error", "text", "The error: message, stack trace, failing output.", required=True), _CONTEXT),
        "debug", "debug", _ASKS,
    ),
    Tool(
        "spec", "Write a specification",
        "Writes a specification document for requirements: scope, behaviour, acceptance criteria, open questions. Use "
        'it before work on something new: "write a spec", "plan this", "what exactly should it do".',
        (
            _ROOT, Argument("requirements", "text", "What is wanted, in anybody's words.", required=True),
            Argument("output_path", "path", "Where the document goes; below docs/specs/ if not given."), _CONTEXT,
        ),
        "spec", "spec", _CHANGES, writes=True,
    ),
    Tool(
        "retrospective", "Look back at a session",
        'What went well and what went badly in a session, from its call log. Use it at the end of a session: "how did '
        'that go", "why did this take so long".',
        (_LOGGED,), "retrospective", "retrospective", _ASKS,
    ),
    Tool(
        "trainer", "Learn from a session",
        "Reads a session's call log for lessons and files them into the brain as notes that wait for a person. Use it "
        'when something was learned the hard way: "remember this", "learn from this session".',
        (_LOGGED,), "trainer", "trainer", _ADDS,
    ),
)  # fmt: skip

_BRAIN = (
    Tool(
        "brain_query", "Search the notes",
        "Finds notes by words, with where each comes from and whether a person approved it. Use it before work begins: "
        '"what do we know about", "did we decide this before".',
        (
            Argument("query", "text", "What to look for.", required=True), _SCOPE,
            Argument("limit", "integer", "How many notes at most; 8 if not given."),
        ),
        "", "", _READS, scope="read",
    ),
    Tool(
        "brain_write", "File a note",
        "Files a note. It is pending until a person approves it. Use it for what the next session has to know: "
        '"remember that", "write this down".',
        (
            Argument("note", "text", "The note, as Markdown.", required=True), _SCOPE,
            Argument("title", "text", "Its title; the first line if not given."),
            Argument("tags", "texts", "Words to find it by."),
        ),
        "", "", _FILES_A_NOTE,
    ),
    Tool(
        "brain_answer", "Answer from the notes",
        "Answers a question from notes only, each named by its id; says so where the notes hold no answer. Use it for "
        '"how is this done here", "why was it decided so".',
        (Argument("question", "text", "The question.", required=True), _SCOPE),
        "brain", "brain", _ASKS,
    ),
)  # fmt: skip

_LOOKING = (
    Tool(
        "tier", "See which tiers answer",
        "Which tiers of models can be reached now and how that was found out. Spends nothing.",
        (), "", "", _ASKS, scope="read",
    ),
    Tool(
        "session_log", "Read a session's log",
        "The entries of a session's call log, oldest first.",
        (_LOGGED,), "", "", _READS, scope="read",
    ),
    Tool(
        "stats_models", "Compare models",
        "Per skill and model: calls, accept and escalation rate, errors, latency, tokens, cost.",
        (), "", "", _READS, takes_session=False, scope="read",
    ),
)  # fmt: skip

_RUNS = (
    Tool(
        "run_start", "Start a workflow",
        "Starts a workflow that the operator listed, unattended and in the sandbox, and returns its run id at once.",
        (
            Argument("workflow", "text", "A name from the operator's list; never a path.", required=True),
            Argument("params", "object", "The workflow's parameters."),
        ),
        "", "", _CHANGES, takes_session=False,
    ),
    Tool(
        "run_status", "See how a run is doing", "Where a run is, what it waits for, what it has spent.",
        (_RUN,), "", "", _READS, takes_session=False, scope="read",
    ),
    Tool(
        "run_result", "Read a run's result", "The result of a run, once it is over.",
        (_RUN,), "", "", _READS, takes_session=False, scope="read",
    ),
    Tool(
        "run_cancel", "Cancel a run", "Stops a run now; a person can let it go on.",
        (_RUN,), "", "", _ENDS, takes_session=False,
    ),
    Tool(
        "approvals_list", "List approvals", "What waits for a person's decision. No tool can decide it.",
        (), "", "", _READS, takes_session=False, scope="read",
    ),
    Tool(
        "proposals_list", "List proposals", "Changes that passed the gate and wait for people.",
        (), "", "", _READS, takes_session=False, scope="read",
    ),
)  # fmt: skip

TABLE: tuple[Tool, ...] = (*_TDD, *_THINKING, *_BRAIN, *_LOOKING, *_RUNS)
RUN_TOOLS = frozenset(tool.name for tool in _RUNS)
"""Tools that are about runs: the service answers them, not the skills."""
USUAL = (
    _ROOT,
    Argument("task", "text", "What is to be done.", required=True),
    Argument("files", "paths", "Files to look at, relative to the project."),
)
"""The arguments of a skill that names none of its own."""


def find_tool(name: str) -> Tool | None:
    """The tool of the table that has this name."""
    return next((tool for tool in TABLE if tool.name == name), None)


def tool_of(skill: Skill) -> Tool:
    """The tool that a person's or a repository's skill adds."""
    if any(tool.skill == skill.name for tool in TABLE):
        raise InternalBug(f"the skill '{skill.name}' has its tools in the table")
    arguments = USUAL if skill.arguments is None else skill.arguments
    named = skill.files or "files"
    files = (named,) if any(one.name == named for one in arguments) else ()
    hints = _CHANGES if skill.writes else _ASKS
    title = skill.name.replace("-", " ").capitalize()
    phase = skill.phase or skill.name
    return Tool(
        skill.tool_name,
        title=title,
        doc=skill.description,
        arguments=arguments,
        skill=skill.name,
        phase=phase,
        hints=hints,
        writes=skill.writes,
        files=files,
    )


def tools_for(skills: Iterable[Skill]) -> dict[str, Tool]:
    """All tools by name: those of the table, then one for each skill that has none there."""
    known = {tool.skill for tool in TABLE}
    added = (tool_of(skill) for skill in skills if skill.name not in known)
    return {tool.name: tool for tool in (*TABLE, *added)}
