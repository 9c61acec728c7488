"""`bailiwick graph`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from bailiwick.drawing.model import FORMATS
from bailiwick.errors import Place, UsageError

ENDING = "BW234"
ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid", ".txt": "ascii"}


@click.command()
@click.argument("workflow")
@click.option("--format", "wanted", type=click.Choice(FORMATS), help="Default: ascii on a terminal, else mermaid.")
@click.option("-o", "--output", "file", metavar="FILE", help="Write to FILE; its ending chooses the format.")
@click.option("--plain", is_flag=True, help="Draw ascii without box characters.")
def graph(*, workflow: str, wanted: str | None, file: str | None, plain: bool) -> int:
    """Draw WORKFLOW (a directory, a workflow.yaml or a name).

    \b
    Examples:
      bailiwick graph my-workflow/
      bailiwick graph my-workflow/ --format svg -o picture.svg
    """
    from bailiwick.config.paths import find_paths
    from bailiwick.drawing.service import draw
    from bailiwick.workflows.service import load_workflow

    loaded = load_workflow(workflow, Path.cwd(), find_paths().config)
    on_terminal = sys.stdout.isatty() and file is None
    chosen = wanted or _by_ending(file) or ("ascii" if on_terminal else "mermaid")
    width = shutil.get_terminal_size().columns if on_terminal else 80
    text = draw(loaded.graph, chosen, plain=plain or (on_terminal and not _shows_boxes()), width=width)
    if file is None:
        click.echo(text, nl=False)
        return 0
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the picture can't be written: {error.strerror}",
            place=Place(file),
            hint="choose another -o FILE",
            code="BW233",
        ) from error
    return 0


def _by_ending(file: str | None) -> str | None:
    if file is None:
        return None
    ending = Path(file).suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(
            f"a picture can't be written as '{ending or Path(file).name}'",
            place=Place(file),
            hint=f"end the name with one of {', '.join(ENDINGS)}, or name the --format",
            code=ENDING,
        )
    return ENDINGS[ending]


def _shows_boxes() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") in ("utf8", "utf16")
