"""Which commands there are and where they live. One line each; nothing here is imported before it is called."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """Where a command lives and what it says of itself in the list."""

    module: str
    attribute: str
    help: str
    hidden: bool = False


COMMANDS: dict[str, Entry] = {
    "run": Entry("bailiwick.runs.cli_run", "run", "Run a workflow, or go on with it where it was."),
    "status": Entry("bailiwick.runs.cli_query", "status", "What waits for you, what finished, failed or sleeps."),
    "why": Entry("bailiwick.runs.cli_query", "why", "Why a run or node waits, stopped or went this way."),
    "runs": Entry("bailiwick.runs.cli_group", "runs", "List, show, stop, resume, rewind, fork, answer, export runs."),
    "stop": Entry("bailiwick.runs.cli_control", "stop", "Stop a run at the next node, or now."),
    "resume": Entry("bailiwick.runs.cli_run", "resume", "Go on with a run that stopped or failed."),
    "logs": Entry("bailiwick.runs.cli_query", "logs", "What a run did, line by line."),
    "worker": Entry("bailiwick.runs.cli_run", "worker", "Take ready runs and walk them."),
    "validate": Entry("bailiwick.workflows.cli", "validate", "Check a workflow and list every problem with its place."),
    "graph": Entry("bailiwick.drawing.cli", "graph", "Draw a workflow as mermaid, dot, svg or text."),
    "schema": Entry("bailiwick.workflows.cli", "schema", "Print a JSON Schema for editors."),
    "new": Entry("bailiwick.workflows.cli", "new", "Make a commented workflow to start from."),
    "demo": Entry("bailiwick.demo.cli", "demo", "See it work in under a minute: no key, no network."),
    "doctor": Entry(
        "bailiwick.doctor.cli", "doctor", "Check this machine; each problem with the command that fixes it."
    ),
    "issue-to-pr": Entry(
        "bailiwick.patterns.cli", "issue_to_pr", "Turn an issue into a proposal that passed the gate."
    ),
    "self-heal": Entry(
        "bailiwick.patterns.cli", "self_heal", "Let an agent try to make a red gate green, within bounds."
    ),
    "gate": Entry("bailiwick.gate.cli", "gate", "Check the work tree as a proposal would be checked."),
    "proposals": Entry(
        "bailiwick.proposals.cli", "proposals", "List, show, check out, publish, reject, discard, follow proposals."
    ),
    "sandbox": Entry("bailiwick.fence.cli", "sandbox", "Look at the sandbox, or open a shell in it."),
    "audit": Entry("bailiwick.audit.cli", "audit", "Verify, show and export the tamper-evident record."),
    "secrets": Entry("bailiwick.secrets.cli", "secrets", "Check that every secret can be read; none is shown."),
    "agents": Entry("bailiwick.agents.cli", "agents", "The ways to reach an agent, and what each of them needs."),
    "login": Entry("bailiwick.agents.cli", "login", "Log a backend in, in a home of its own."),
    "limits": Entry("bailiwick.agents.cli", "limits", "Windows and limits of your credentials, as last seen."),
    "skill": Entry("bailiwick.skills.cli", "skill", "Call a skill, or list, show, check and make skills."),
    "brain": Entry("bailiwick.brain.cli", "brain", "Notes that skills and briefs remember; a person approves them."),
    "mcp": Entry("bailiwick.service.cli", "mcp", "Speak MCP on standard input and output, for an editor or agent."),
    "serve": Entry("bailiwick.service.cli", "serve", "Serve MCP over HTTP, with tokens."),
    "init": Entry("bailiwick.service.cli_init", "init", "Set this repository up: a gate, and how an editor connects."),
    "stats": Entry("bailiwick.routing.cli_stats", "stats", "What models and sessions did, and what it cost."),
    "costs": Entry("bailiwick.routing.cli_stats", "costs", "What each day, workflow and model cost."),
    "config": Entry("bailiwick.config.cli", "config", "Show, set and check the configuration, with origins."),
    "du": Entry("bailiwick.runs.cli_du", "du", "What takes space, and what of it is kept no longer."),
    "help": Entry("bailiwick.cli.help", "help_", "What a command does and which options it takes."),
    "completion": Entry("bailiwick.completion.cli", "completion", "Print the completion script for your shell."),
}

GROUPS: dict[str, list[str]] = {
    "Start": ["demo", "init", "new", "run", "status"],
    "Runs": ["runs", "why", "logs", "stop", "resume", "worker"],
    "Workflows": ["validate", "graph", "schema"],
    "Changes": ["issue-to-pr", "self-heal", "gate", "proposals"],
    "Skills": ["skill", "brain", "mcp", "serve"],
    "Agents": ["agents", "login", "limits", "stats", "costs"],
    "Machine": ["doctor", "du", "sandbox", "config", "secrets", "audit", "completion", "help"],
}
