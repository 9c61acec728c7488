"""`validate`, `schema`, `new`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import click

from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.errors import InputInvalid, NotFound, UsageError
from bailiwick.ids import NAME, Json

TEMPLATES = BUNDLED_FILES / "templates"


@click.command()
@click.argument("workflow")
@click.option("--strict", is_flag=True, help="Warnings are errors.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def validate(*, workflow: str, strict: bool, as_json: bool) -> int:
    """Check WORKFLOW and list every problem with file:line:column and a hint.

    \b
    Example:  bailiwick validate my-workflow/
    """
    from bailiwick.config.paths import find_paths
    from bailiwick.terminal.output import Printer, counted
    from bailiwick.workflows.service import load_workflow

    try:
        loaded = load_workflow(workflow, Path.cwd(), find_paths().config, strict=strict)
        problems, graph = loaded.warnings, loaded.graph
    except InputInvalid as error:
        problems, graph = error.problems(), None
    bad = any(not p.warning for p in problems)
    if as_json:
        rows: list[Json] = [
            {"code": p.code, "what": p.what, "place": str(p.place or ""), "hint": p.hint, "warning": p.warning}
            for p in problems
        ]
        click.echo(json.dumps({"valid": not bad, "nodes": len(graph.nodes) if graph else None, "problems": rows}))
        return 2 if bad else 0
    for problem in problems:
        Printer.on(sys.stdout if problem.warning else sys.stderr).problem(problem)
    if graph is not None:
        notes = f", {counted(len(problems), 'warning')}" if problems else ""
        click.echo(f"{graph.name}: valid, {counted(len(graph.nodes), 'node')}{notes}")
    return 2 if bad else 0


def _schemas() -> dict[str, str]:
    return {
        "workflow": "bailiwick.lang.schema:workflow_schema",
        "config": "bailiwick.config.schema:config_schema",
        "policy": "bailiwick.config.schema:policy_schema",
        "gate": "bailiwick.gate.spec:gate_schema",
        "models": "bailiwick.routing.models_file:models_schema",
        "skill": "bailiwick.skills.reading:skill_schema",
    }


@click.command()
@click.argument("name", default="workflow", type=click.Choice(sorted(_schemas())))
def schema(name: str) -> int:
    """Print the JSON Schema of a file, for editors.

    \b
    Example:  bailiwick schema workflow > workflow.schema.json
    """
    from importlib import import_module

    module, attribute = _schemas()[name].split(":")
    click.echo(json.dumps(getattr(import_module(module), attribute)(), indent=2))
    return 0


def templates() -> dict[str, str]:
    """The templates of `new`, with what they are for."""
    listed: dict[str, str] = json.loads((TEMPLATES / "index.json").read_text(encoding="utf-8"))
    return listed


@click.command()
@click.argument("name", required=False)
@click.option("--template", default="hello", show_default=True, metavar="T", help="What to start from.")
@click.option("--list", "listing", is_flag=True, help="List the templates.")
def new(*, name: str | None, template: str, listing: bool) -> int:
    """Make a commented workflow in the directory NAME.

    \b
    Examples:
      bailiwick new hello
      bailiwick new nightly-report --template nightly
    """
    known = templates()
    if listing or name is None:
        for key, text in known.items():
            click.echo(f"{key:12}  {text}")
        return 0
    if template not in known:
        raise NotFound(f"no template '{template}'", hint=f"one of: {', '.join(known)}")
    target = Path(name)
    if not NAME.fullmatch(target.name):
        raise UsageError(
            f"'{target.name}' is not a valid workflow name", hint="letters, digits, '_', '.', '-'; at most 64"
        )
    if target.exists():
        raise UsageError(f"{target} exists already", hint="choose another name; nothing was changed")
    shutil.copytree(TEMPLATES / template, target)
    file = target / "workflow.yaml"
    text = file.read_text(encoding="utf-8").replace(f"name: {template}\n", f"name: {target.name}\n", 1)
    file.write_text(text, encoding="utf-8")
    click.echo(f"{target}/ made from '{template}'. Next:\n  bailiwick validate {target}\n  bailiwick run {target}")
    return 0
