"""The root command: names and one-line helps in a static table, each command imported only when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from bailiwick.cli.table import COMMANDS, GROUPS, Entry
from bailiwick.errors import BailiwickError, InternalBug

INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are loaded by name on use; its help needs none of them."""

    def __init__(
        self,
        *args: Any,
        table: dict[str, Entry] | None = None,
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
        return load(entry) if entry else None

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


def load(entry: Entry) -> click.Command:
    """Import a command."""
    module = importlib.import_module(entry.module)
    command: click.Command = getattr(module, entry.attribute)
    return command


EPILOG = "Examples:  bailiwick demo   ·   bailiwick new hello && bailiwick run hello   ·   bailiwick status"


@click.group(cls=LazyGroup, table=COMMANDS, sections=GROUPS, invoke_without_command=True, epilog=EPILOG)
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
        _show(error)
        return error.exit_code
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:  # noqa: BLE001  the last line of defence: our bug, told as such
        return _own_bug(error)
    return result if isinstance(result, int) else 0


def _show(error: BailiwickError) -> None:
    """Print an error; what it quotes of files and answers is data, never a terminal escape."""
    from bailiwick.cli.output import problem_lines

    for problem in error.problems():
        for line in problem_lines(problem):
            click.echo(line, err=True)


def _own_bug(error: Exception) -> int:
    import traceback

    click.echo("".join(traceback.format_exception(error)), err=True)
    bug = InternalBug(f"{type(error).__name__}: {error}", hint="this is ours; the journal is intact: please report it")
    click.echo(str(bug.problems()[0]), err=True)
    return bug.exit_code
