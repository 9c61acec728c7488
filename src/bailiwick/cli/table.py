"""Which commands there are and where they live. One line each; nothing here is imported before it is called."""

from __future__ import annotations

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """Where a command lives and what it says of itself in the list."""

    module: str
    attribute: str
    help: str
    hidden: bool = False


COMMANDS: dict[str, CommandEntry] = {
    "run": CommandEntry("bailiwick.cli.commands.run", "run", "Run a workflow, or go on with it where it was."),
    "status": CommandEntry(
        "bailiwick.cli.commands.query", "status", "What waits for you, what finished, failed or sleeps."
    ),
    "why": CommandEntry("bailiwick.cli.commands.query", "why", "Why a run or node waits, stopped or went this way."),
    "runs": CommandEntry(
        "bailiwick.cli.commands.runs", "runs", "List, show, stop, resume, rewind, fork, answer, export runs."
    ),
    "stop": CommandEntry("bailiwick.cli.commands.control", "stop", "Stop a run at the next node, or now."),
    "resume": CommandEntry("bailiwick.cli.commands.run", "resume", "Go on with a run that stopped or failed."),
    "logs": CommandEntry("bailiwick.cli.commands.query", "logs", "What a run did, line by line."),
    "worker": CommandEntry("bailiwick.cli.commands.run", "worker", "Run every run that is ready."),
    "validate": CommandEntry(
        "bailiwick.cli.commands.workflows", "validate", "Check a workflow and list every problem with its place."
    ),
    "graph": CommandEntry("bailiwick.cli.commands.graph", "graph", "Draw a workflow as mermaid, dot, svg or text."),
    "schema": CommandEntry("bailiwick.cli.commands.workflows", "schema", "Print a JSON Schema for editors."),
    "new": CommandEntry("bailiwick.cli.commands.workflows", "new", "Make a commented workflow to start from."),
    "demo": CommandEntry("bailiwick.cli.commands.demo", "demo", "See it work in under a minute: no key, no network."),
    "doctor": CommandEntry(
        "bailiwick.cli.commands.doctor", "doctor", "Check this machine; each problem with the command that fixes it."
    ),
    "issue-to-pr": CommandEntry(
        "bailiwick.cli.commands.pipelines", "issue_to_pr", "Turn an issue into a proposal that passed the gate."
    ),
    "self-heal": CommandEntry(
        "bailiwick.cli.commands.pipelines", "self_heal", "Let an agent try to make a red gate green, within bounds."
    ),
    "gate": CommandEntry("bailiwick.cli.commands.gate", "gate", "Check the work tree as a proposal would be checked."),
    "proposals": CommandEntry(
        "bailiwick.cli.commands.proposals",
        "proposals",
        "List, show, check out, publish, reject, discard, follow proposals.",
    ),
    "sandbox": CommandEntry("bailiwick.cli.commands.sandbox", "sandbox", "Look at the sandbox, or open a shell in it."),
    "audit": CommandEntry(
        "bailiwick.cli.commands.audit", "audit", "Verify, show and export the tamper-evident record."
    ),
    "secrets": CommandEntry(
        "bailiwick.cli.commands.secrets", "secrets", "Check that every secret can be read; none is shown."
    ),
    "agents": CommandEntry(
        "bailiwick.cli.commands.agents", "agents", "The ways to reach an agent, and what each of them needs."
    ),
    "login": CommandEntry("bailiwick.cli.commands.agents", "login", "Log a backend in, in a home of its own."),
    "limits": CommandEntry(
        "bailiwick.cli.commands.agents", "limits", "Windows and limits of your credentials, as last seen."
    ),
    "skill": CommandEntry(
        "bailiwick.cli.commands.skill", "skill", "Call a skill, or list, show, check and make skills."
    ),
    "brain": CommandEntry(
        "bailiwick.cli.commands.brain", "brain", "Notes that skills and briefs remember; a person approves them."
    ),
    "mcp": CommandEntry(
        "bailiwick.cli.commands.serve", "mcp", "Speak MCP on standard input and output, for an editor or agent."
    ),
    "serve": CommandEntry("bailiwick.cli.commands.serve", "serve", "Serve MCP over HTTP, with tokens."),
    "init": CommandEntry(
        "bailiwick.cli.commands.init", "init", "Set this repository up: a gate, and how an editor connects."
    ),
    "stats": CommandEntry("bailiwick.cli.commands.stats", "stats", "What models and sessions did, and what it cost."),
    "costs": CommandEntry("bailiwick.cli.commands.stats", "costs", "What each day, workflow and model cost."),
    "config": CommandEntry(
        "bailiwick.cli.commands.config", "config", "Show, set and check the configuration, with origins."
    ),
    "du": CommandEntry("bailiwick.cli.commands.du", "du", "What takes disk space, and what retention would remove."),
    "help": CommandEntry("bailiwick.cli.help", "help_", "What a command does and which options it takes."),
    "completion": CommandEntry(
        "bailiwick.cli.commands.completion", "completion", "Print the completion script for your shell."
    ),
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
