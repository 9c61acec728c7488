"""`bailiwick completion`."""

from __future__ import annotations

import click

from bailiwick.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print the completion script for SHELL.

    \b
    Example:  eval "$(bailiwick completion bash)"
    """
    from click.shell_completion import get_completion_class

    from bailiwick.cli.root import root

    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"no completion for {shell}")
    click.echo(kind(root, {}, "bailiwick", "_BAILIWICK_COMPLETE").source())
    return 0
