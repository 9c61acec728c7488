"""The root command: names and one-line helps in a static table, each command imported only when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import click

from bailiwick.cli.table import COMMANDS, GROUPS, CommandEntry
from bailiwick.errors import BailiwickError, InternalBug, Problem, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERRUPTED = 130
COMPLETION = "bailiwick.cli.completion"
"""What makes commands complete in a shell; found by name, as it stands above."""


class LazyGroup(click.Group):
    """A group whose commands are loaded by name on use; its help needs none of them."""

    def __init__(
        self,
        *args: Any,
        table: dict[str, CommandEntry] | None = None,
        sections: dict[str, list[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table or {}
        self.sections = sections or {"Commands": [name for name, entry in self.table.items() if not entry.hidden]}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, entry in self.table.items() if not entry.hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        if ctx.resilient_parsing:
            attach = importlib.import_module(COMPLETION).attach
            above = [one.info_name or "" for one in (ctx.parent, ctx) if one is not None and one.parent is not None]
            completed: click.Command = attach(load(entry), " ".join([*above, cmd_name]))
            return completed
        return load(entry)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands by name, none of them loaded; then the options."""
        from click.shell_completion import CompletionItem

        shown = ((name, entry) for name, entry in self.table.items() if not entry.hidden)
        items = [CompletionItem(name, help=entry.help) for name, entry in shown if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in self.table and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, list(self.table), 1)
            hint = f"did you mean '{near[0]}'?" if near else f"see {ctx.command_path} --help"
            ctx.fail(f"no command '{name}'; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in self.sections.items():
            rows = [(name, self.table[name].help) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)


def _zone() -> str | None:
    """The zone that the person has configured; a configuration that can't be read is told by whoever needs it."""
    from pathlib import Path

    from bailiwick.config.service import load_config

    try:
        zone: str | None = load_config(Path.cwd(), {}).get("time.zone")
    except (BailiwickError, OSError):
        return None
    return zone


def load(entry: CommandEntry) -> click.Command:
    """Import a command; times that it shows or reads are those of the person's zone."""
    from bailiwick.clock import show_times_in

    show_times_in(_zone)
    module = importlib.import_module(entry.module)
    command: click.Command = getattr(module, entry.attribute)
    return command


EPILOG = "Examples:  bailiwick demo   ·   bailiwick new hello && bailiwick run hello   ·   bailiwick status"


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    sections=GROUPS,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="bailiwick", prog_name="bailiwick", message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Run long jobs unattended inside limits that a person sets: every step journaled, every crash survived."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(load(COMMANDS["status"]))


def run(argv: list[str]) -> int:
    """Run a command line; gives the exit code. Errors of ours are printed, never a traceback."""
    try:
        result: Any = root.main(argv, prog_name="bailiwick", standalone_mode=False)
    except BailiwickError as error:
        _show(error, as_json=wants_json(argv))
        return error.exit_code
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        if wants_json(argv):
            _document([Problem(UsageError.default_code, error.format_message())])
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:  # noqa: BLE001  the last line of defence: our bug, told as such
        return _own_bug(error, as_json=wants_json(argv))
    return result if isinstance(result, int) else 0


def wants_json(argv: list[str]) -> bool:
    """Whether a command line asks for one JSON document."""
    return "--json" in (argv[: argv.index("--")] if "--" in argv else argv)


def _document(problems: list[Problem]) -> None:
    """Write an error as the one document of the command: what, where, how to fix it; each problem where several."""
    from bailiwick.terminal.output import emit_json

    rows = [
        {
            "code": one.code,
            "message": one.what,
            "place": str(one.place) if one.place else None,
            "hint": one.hint or None,
        }
        for one in problems
        if not one.warning
    ]
    emit_json({"error": rows[0], "problems": rows} if len(rows) > 1 else {"error": rows[0]})


def _show(error: BailiwickError, *, as_json: bool) -> None:
    """Print an error; what it quotes of files and answers is data, never a terminal escape."""
    from bailiwick.terminal.output import Printer

    if as_json:
        _document(error.problems())
    for problem in error.problems():
        Printer.on(sys.stderr).problem(problem)


def _own_bug(error: Exception, *, as_json: bool) -> int:
    import traceback

    click.echo("".join(traceback.format_exception(error)), err=True)
    bug = InternalBug(f"{type(error).__name__}: {error}", hint="this is ours; the journal is intact: please report it")
    click.echo(str(bug.problems()[0]), err=True)
    if as_json:
        _document(bug.problems())
    return bug.exit_code
