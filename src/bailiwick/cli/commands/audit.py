"""`bailiwick audit`: verify, show and export the record."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bailiwick.audit.model import ChainVerdict
from bailiwick.clock import local
from bailiwick.config.paths import find_paths

FAILED = 1


@click.group(name="audit")
def audit() -> None:
    """Verify, show and export the tamper-evident record."""


@audit.command()
@click.option("--against", metavar="HEAD|FILE", help="A head that was kept elsewhere, or a file with one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def verify(*, against: str | None, as_json: bool) -> int:
    """Check every entry: was one changed, removed, inserted, moved or cut off? Exits 1 if so.

    \b
    Example:  bailiwick audit verify --against audit-head.txt
    """
    from bailiwick.audit import service

    anchor = service.anchor_of(against) if against is not None else None
    verdict = service.verify(find_paths().state, anchor)
    if as_json:
        click.echo(json.dumps(verdict.to_json(), indent=2))
    else:
        _tell(verdict)
    return 0 if verdict.ok else FAILED


def _tell(verdict: ChainVerdict) -> None:
    for finding in verdict.findings:
        where = f"line {finding.line}: " if finding.line else ""
        click.echo(f"{finding.kind.replace('_', ' ')}: {where}{finding.what}", err=True)
    if not verdict.ok:
        click.echo("the audit was tampered with or damaged: keep the state directory as it is", err=True)
        return
    count = verdict.head.count
    click.echo(f"chain consistent, {'anchored' if verdict.anchored else 'not anchored'}: {count} entries")
    click.echo(f"head: {verdict.head}")
    if verdict.unfinished:
        click.echo(
            f"note: {verdict.unfinished} bytes of an unfinished line at the end: a crash; the next entry says so"
        )
    if not verdict.anchored:
        click.echo("keep the head elsewhere and compare it later: bailiwick audit verify --against HEAD")


@audit.command()
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many, from the end.")
@click.option("--kind", help="Only this kind, or those that begin with it and a dot.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def show(*, limit: int, kind: str | None, as_json: bool) -> None:
    """Show the last entries, the newest at the end. They are not verified.

    \b
    Example:  bailiwick audit show --kind gate --limit 5
    """
    from bailiwick.audit import service

    found = service.entries(find_paths().state, kind=kind, limit=limit)
    if as_json:
        click.echo(json.dumps({"entries": [entry.to_json() for entry in found]}, indent=2))
        return
    if not found:
        click.echo("no entries" if kind is None else "no entries of this kind")
    for entry in found:
        data = json.dumps(entry.data, ensure_ascii=True)
        click.echo(_plain(f"{entry.seq:>6}  {local(entry.time)}  {entry.kind}  {entry.actor}  {data}"))


@audit.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--head", "head_only", is_flag=True, help="Only the head: one line that anchors everything before it.")
def export(*, file: Path | None, head_only: bool) -> int:
    """Write the verified entries and the head to FILE, or to standard output.

    A FILE with an earlier head is replaced only if the record goes on from there.

    \b
    Example:  bailiwick audit export --head /mnt/elsewhere/audit-head.txt
    """
    from bailiwick.audit import service

    state = find_paths().state
    verdict = service.verify(state) if file is None else service.export(state, file, head_only=head_only)
    if not verdict.ok:
        _tell(verdict)
        click.echo("nothing was written", err=True)
        return FAILED
    if file is None:
        click.echo(service.exported(state, verdict.head, head_only=head_only), nl=False)
    else:
        click.echo(f"{file}: {verdict.head}")
    return 0


def _plain(text: str) -> str:
    from bailiwick.processes.proc import plain_line

    return plain_line(text.encode("utf-8", "replace"))
