"""`bailiwick help`: the same as `--help`, for those who type it first."""

from __future__ import annotations

import click

from bailiwick.errors import NotFound


@click.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> int:
    """Show what COMMAND does and which options it takes; without one, all commands.

    \b
    Example:  bailiwick help runs answer
    """
    above = ctx.find_root()
    command: click.Command = above.command
    context = click.Context(command, info_name=above.info_name, help_option_names=above.help_option_names)
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            raise NotFound(f"there is no command '{' '.join(words)}'", hint=f"see: {context.command_path} --help")
        command = found
        context = click.Context(command, info_name=word, parent=context)
    click.echo(command.get_help(context))
    return 0
