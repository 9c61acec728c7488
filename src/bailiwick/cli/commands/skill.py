"""`bailiwick skill`: call a skill as a command, and list, show, check and make skills."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bailiwick.cli.printing import JSON
from bailiwick.config.service import load_config
from bailiwick.errors import Problem, UsageError
from bailiwick.ids import Json
from bailiwick.lang.wording import nearest
from bailiwick.skills.authoring import check_library, check_path, make_skill
from bailiwick.skills.display import indented, plain
from bailiwick.skills.folders import IN_REPOSITORY, SkillSet, find_skills, person_folder
from bailiwick.skills.model import Argument, Skill, Tool
from bailiwick.skills.tools import RUN_TOOLS, TABLE, find_tool, input_schema, tool_of, tools_for
from bailiwick.terminal.output import Printer, counted, emit_json

PHASES = {"red": "tdd_red", "green": "tdd_green", "refactor": "tdd_refactor"}
_WIDTH = 100
_METAVARS = {"path": "PATH", "paths": "A,B", "texts": "A,B", "integer": "N", "id": "ID", "object": "JSON"}


class SkillGroup(click.Group):
    """The commands of its own, then a command for each tool; the tools of people's skills are looked up when named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        hidden = {*RUN_TOOLS, *PHASES.values()}
        return [*self.commands, *(tool.name for tool in TABLE if tool.name not in hidden)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        tool = None if own else find_tool(cmd_name.replace("-", "_"))
        if own is None and tool is None and not cmd_name.startswith("-"):
            tool = _added_tool(cmd_name)
        return own or (_command_of(tool) if tool is not None and tool.name not in RUN_TOOLS else None)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            near = nearest(name, self.list_commands(ctx))
            hint = f"did you mean '{near[0]}'?" if near else "`bailiwick skill list` shows them"
            ctx.fail(f"no skill '{plain(name)}'; {hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=SkillGroup)
def skill() -> None:
    """Call a skill: the cheapest model whose work holds does it, and every attempt is on record.

    \b
    Exits with 0 when it passed, 1 when it failed, 2 for bad input, 6 when no tier gave
    anything that holds, 8 when something has to be there first.
    Examples:
      bailiwick skill review --files src/app.py,src/db.py
      bailiwick skill tdd red --spec "a price below zero is refused" --test-cmd "pytest -q"
      bailiwick skill list
    """


@skill.command("list")
@JSON
def list_(as_json: bool) -> int:
    """List the skills that count here, with their tools and where each comes from.

    \b
    Example:  bailiwick skill list
    """
    library = _library()
    tools = tools_for(library.skills.values()).values()
    named = {name: [tool.name for tool in tools if tool.skill == name] for name in library.skills}
    if as_json:
        rows = [{**_about(one), "tools": named[one.name]} for _, one in sorted(library.skills.items())]
        problems = [_row(one) for one in (*library.notes, *(p for many in library.broken.values() for p in many))]
        emit_json({"skills": rows, "problems": problems})
        return 0
    for name, one in sorted(library.skills.items()):
        text = plain(one.description)
        click.echo(f"{name:16}  {one.origin:10}  {text if len(text) <= _WIDTH else text[: _WIDTH - 1] + '…'}")
        click.echo(f"{'':16}  {'':10}  {', '.join(named[name])}")
    _complain(library)
    return 0


@skill.command()
@click.argument("name")
@JSON
def show(name: str, as_json: bool) -> int:
    """Show the discipline of the skill NAME, and what its tools take.

    \b
    Example:  bailiwick skill show review
    """
    library = _library()
    tool = find_tool(name.replace("-", "_"))
    wanted = tool.skill if tool is not None and tool.skill and name not in library.skills else name
    one = library.get(wanted)
    tools = [tool for tool in tools_for(library.skills.values()).values() if tool.skill == one.name]
    if as_json:
        listed = [{"name": tool.name, "title": tool.title, "input": input_schema(tool)} for tool in tools]
        emit_json({**_about(one), "body": one.body, "parts": dict(one.parts), "tools": listed})
        return 0
    click.echo(f"{one.name}  {one.origin}  {plain(one.path)}\n{plain(one.description)}\n")
    for tool in tools:
        words = (one.name if one.required else f"[{one.name}]" for one in tool.all_arguments)
        click.echo(f"{tool.name}: {', '.join(words)}")
    for text in (one.body, *one.parts.values()):
        click.echo("")
        for line in text.splitlines():
            click.echo(indented(line))
    return 0


@skill.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@JSON
def check(path: Path | None, as_json: bool) -> int:
    """Check the skill in the folder PATH, or every skill there is; each problem with its place.

    \b
    Example:  bailiwick skill check .bailiwick/skills/changelog
    """
    found = [check_path(path)] if path is not None else check_library(_library())
    bad = any(not one.valid for one in found)
    if as_json:
        rows = [
            {"name": one.name, "path": one.path, "valid": one.valid, "problems": [_row(p) for p in one.problems]}
            for one in found
        ]
        emit_json({"valid": not bad, "skills": rows})
        return UsageError.exit_code if bad else 0
    for one in found:
        for problem in one.problems:
            Printer.on(sys.stderr).problem(problem)
        if one.valid:
            click.echo(
                f"{plain(one.name)}: valid" + (f", {counted(len(one.problems), 'warning')}" if one.problems else "")
            )
    return UsageError.exit_code if bad else 0


@skill.command()
@click.argument("name")
@click.option("--from", "like", default="", metavar="SKILL", help="Copy a bundled skill instead of an empty one.")
@click.option("--here", is_flag=True, help=f"Into {IN_REPOSITORY} of this repository instead of your own skills.")
def new(name: str, like: str, here: bool) -> int:
    """Make the skill NAME: a folder with a commented SKILL.md. It is a tool at once, without code.

    \b
    Examples:
      bailiwick skill new changelog
      bailiwick skill new review --from review
    """
    config = load_config(Path.cwd(), {})
    root = config.repository.root if config.repository is not None else Path.cwd()
    file = make_skill(root / IN_REPOSITORY if here else person_folder(config), name, like)
    tool = name.replace("-", "_")
    click.echo(f"{file} made. Next:\n  bailiwick skill check {file.parent}")
    further = (
        "commit it: a repository's skills count as of the last commit" if here else f"bailiwick skill {tool} --help"
    )
    click.echo(f"  {further}")
    return 0


class PhaseGroup(click.Group):
    """The phases of test-driven development, each the command of its tool."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(PHASES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        tool = find_tool(PHASES.get(cmd_name, ""))
        return _command_of(tool, cmd_name) if tool is not None else None


@skill.group("tdd", cls=PhaseGroup)
def tdd() -> None:
    """One step of test-driven development: red, green or refactor.

    \b
    Example:  bailiwick skill tdd green --test-path tests/test_price.py --test-cmd "pytest -q"
    """


def _command_of(tool: Tool, name: str = "") -> click.Command:
    """A tool as a command: its arguments are options."""
    options: list[click.Parameter] = [_option(one) for one in tool.all_arguments]
    kind = click.Path(path_type=Path, dir_okay=False)
    options.append(click.Option(["--models", "models_file"], type=kind, metavar="FILE", help="The models.yaml to use."))
    options.append(click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."))

    def call(models_file: Path | None, as_json: bool, **given: Any) -> int:
        from bailiwick.cli.commands.skill_call import Typed, run_call

        return run_call(Typed(tool, given, models_file, as_json=as_json))

    text = f"{tool.doc}\n\nA text of `-` is read from standard input."
    return click.Command(name or tool.name, params=options, callback=call, help=text, short_help=tool.title)


def _option(one: Argument) -> click.Option:
    many = one.kind in ("paths", "texts")
    flag = f"--{one.name.replace('_', '-')}"
    default = "" if one.name != "project_root" or not one.required else " This repository if not given."
    return click.Option(
        [flag, one.name],
        multiple=many,
        type=click.INT if one.kind == "integer" else click.STRING,
        metavar=_METAVARS.get(one.kind, "TEXT"),
        help=one.doc + default + (" (needed)" if one.required and not default else ""),
    )


def _added_tool(name: str) -> Tool | None:
    """The tool of a person's or a repository's skill; raises what is wrong with it where it is broken."""
    library = _library()
    wanted = name.replace("_", "-")
    if wanted not in library.skills and wanted not in library.broken:
        return None
    return None if wanted in {tool.skill for tool in TABLE} else tool_of(library.get(wanted))


def _library() -> SkillSet:
    return find_skills(load_config(Path.cwd(), {}))


def _about(one: Skill) -> dict[str, Json]:
    return {
        "name": one.name,
        "description": one.description,
        "origin": one.origin,
        "path": one.path,
        "digest": one.digest,
        "local_only": one.local_only,
        "chain": list(one.chain) if one.chain else None,
    }


def _row(problem: Problem) -> dict[str, Json]:
    return {
        "code": problem.code,
        "what": problem.what,
        "place": str(problem.place or ""),
        "hint": problem.hint,
        "warning": problem.warning,
    }


def _complain(library: SkillSet) -> None:
    for problem in (*library.notes, *(one for many in library.broken.values() for one in many)):
        Printer.on(sys.stderr).problem(problem)
