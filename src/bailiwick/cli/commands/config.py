"""`bailiwick config`: show, get, set, edit, check, path."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bailiwick.config.display import masked_items, shown, table
from bailiwick.config.service import Config, load_config
from bailiwick.config.shapes import masked
from bailiwick.config.variables import Environment
from bailiwick.errors import InputInvalid, NotReady, Place, UsageError

NO_EDITOR = "BW217"
EDITOR_FAILED = "BW218"


@click.group(name="config")
def config() -> None:
    """Show and change the configuration."""


def _load() -> Config:
    loaded = load_config(Path.cwd(), {})
    for notice in loaded.notices:
        click.echo(str(notice), err=True)
    return loaded


@config.command()
@click.argument("key", required=False)
@click.option("--origin", is_flag=True, help="Say where each value was set.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(key: str | None, origin: bool, as_json: bool) -> None:
    """Show every value that counts, or those at and below KEY."""
    loaded = _load()
    if key is not None:
        loaded.get(key)
    rows = masked_items(loaded, key)
    if as_json:
        document = {row.key: {"value": row.value, "origin": row.origins} if origin else row.value for row in rows}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(table(rows, origin=origin))


@config.command()
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def get(key: str, as_json: bool) -> None:
    """Print the value of KEY: seconds for times, bytes for sizes."""
    value = masked(_load().get(key))
    if as_json or isinstance(value, dict | list):
        click.echo(json.dumps(value, indent=2 if isinstance(value, dict) else None, ensure_ascii=False))
    else:
        click.echo(shown(value))


@config.command(name="set")
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set KEY to VALUE in your own file; its comments stay."""
    from bailiwick.config.editing import set_value
    from bailiwick.config.paths import find_paths

    file = find_paths().person_file
    set_value(file, key, value, Path.cwd())
    click.echo(f"{file}: {key} is set")
    loaded = load_config(Path.cwd(), {})
    deciding = loaded.origins(key)
    if not any(origin.place and origin.place.file == str(file) for origin in deciding):
        counts = shown(masked(loaded.get(key)))
        click.echo(f"here {counts} counts, from {', '.join(str(origin) for origin in deciding)}", err=True)


@config.command()
def edit() -> None:
    """Open your own file in $VISUAL or $EDITOR; it is replaced only by a valid one."""
    from bailiwick.config.editing import check_bytes, make_directory, read_text_file, write_atomically
    from bailiwick.config.paths import find_paths

    file = find_paths().person_file
    make_directory(file.parent)
    before = read_text_file(file)
    draft = file.with_name(f"{file.stem}.draft.yaml")
    if not draft.exists():
        draft.write_bytes(before)
    _run_editor(draft)
    after = draft.read_bytes()
    try:
        check_bytes(after, draft)
    except InputInvalid as error:
        click.echo(f"{file} is unchanged; `bailiwick config edit` goes on with {draft}", err=True)
        raise InputInvalid(error.problems()) from None
    if after != before:
        write_atomically(file, after.decode("utf-8"))
    draft.unlink()
    click.echo("nothing changed" if after == before else f"{file} written")


def _run_editor(file: Path) -> None:
    import shlex
    import subprocess

    command = Environment().editor()
    if command is None:
        raise UsageError("no editor is named", hint="set EDITOR, or use `bailiwick config set`", code=NO_EDITOR)
    try:
        status = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the editor {command!r} can't be started: {error}", hint="set EDITOR", code=NO_EDITOR
        ) from error
    if status != 0:
        raise NotReady(
            f"the editor ended with {status}; nothing was changed",
            place=Place(str(file)),
            hint="run `bailiwick config edit` again to go on with the draft",
            code=EDITOR_FAILED,
        )


@config.command()
def check() -> None:
    """Check every configuration file that counts here."""
    loaded = _load()
    files = sorted({origin.place.file for name in loaded.decided for origin in loaded.origins(name) if origin.place})
    click.echo("the configuration is valid")
    for file in files:
        click.echo(f"  {file}")


@config.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def path(as_json: bool) -> None:
    """Say which files and directories are used."""
    loaded = _load()
    paths = loaded.paths
    places = {
        "policy": paths.policy_file,
        "machine": paths.machine_file,
        "person": paths.person_file,
        "state": paths.state,
        "runs": loaded.runs_dir,
        "cache": paths.cache,
        "run": paths.run,
    }
    if as_json:
        click.echo(json.dumps({name: str(place) for name, place in places.items()}, indent=2))
        return
    for name, place in places.items():
        click.echo(f"{name:<8} {place}" + ("" if place.exists() else "  (not there)"))
