"""The kinds of node between an agent's tree and a proposal: `worktree`, `gate` and `propose`."""

from __future__ import annotations

from bailiwick.lang.draft import RETRY, NodeSyntax
from bailiwick.lang.fields import Anything, Choice, Field, Flag, Table, Text
from bailiwick.lang.work import SHARED, compile_own

DEEDS = ("claim", "changes", "keep", "release")
WORKTREE_FIELDS = (
    Field("do", Choice(DEEDS), "claim a tree, list its changes, keep them as a branch, or release it", required=True),
    Field("repository", Text(empty=False), "the work tree of a git repository, a template", required=True),
    Field("base", Text(empty=False), "the revision that the tree starts from, a template; HEAD if not given"),
    Field("title", Text(), "what the work is called, a template; the branch is named by it"),
    Field("branch", Text(), "the branch, a template; one that is named by the title and the run if not given"),
    Field("heal", Flag(), "the base may be red: what the gate says of it is given back instead of refused"),
    Field("known_red", Anything(), "tests that may be red on the base, a list or a template that gives one"),
)
GATE_FIELDS = (
    Field("repository", Text(empty=False), "the operator's repository, a template", required=True),
    Field("tree", Text(empty=False), "the directory whose files are checked, a template", required=True),
    Field("base", Text(empty=False), "the commit they are compared with, a template", required=True),
    Field("allow", Anything(), "protected paths that may change: a list, or a template that gives one"),
    Field("known_red", Anything(), "tests that may stay red: a list, or a template that gives one"),
    Field("wanted", Anything(), "protected paths that the agent says it has to change: a list, or a template"),
    Field("reason", Text(), "why it says so, a template"),
    Field("title", Text(), "what the work is called, a template"),
    Field("issue", Text(), "what was asked, a template; a check of kind judge reads it"),
)
PROPOSE_FIELDS = (
    Field("repository", Text(empty=False), "the operator's repository, a template", required=True),
    Field("report", Anything(), "the gate report or its digest, a template", required=True),
    Field("branch", Text(empty=False), "the branch, below agent/, a template", required=True),
    Field("base", Text(empty=False), "the commit that the gate compared with, a template", required=True),
    Field("tree", Text(), "the tree that is proposed, a template; the report's if not given"),
    Field("title", Text(empty=False), "what it is about, a template", required=True),
    Field("kind", Choice(("issue-to-pr", "self-heal")), "what it is for; issue-to-pr if not given"),
    Field("issue", Anything(), "the issue: its reference, or a mapping of ref, stem and text; a template"),
    Field("summary", Text(), "what the agent says it did, a template"),
    Field("proposal", Text(), "the proposal that this round goes on with, a template"),
    Field("onto", Text(), "the branch that it is meant for, a template; the forge's default one if not given"),
)
_RETRY = Field("retry", RETRY, "how a failure is tried again")

KINDS = tuple(
    NodeSyntax(name, Table(f"{name} node", (*SHARED, _RETRY, *fields)), compile_own)
    for name, fields in (("worktree", WORKTREE_FIELDS), ("gate", GATE_FIELDS), ("propose", PROPOSE_FIELDS))
)
