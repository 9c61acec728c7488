"""The life of a run's row: created, claimed, renewed, let go, archived, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bailiwick.errors import NotFound, UsageError
from bailiwick.journal import ledger
from bailiwick.journal.blobs import keep_blobs, note_uses
from bailiwick.journal.columns import checksum, decode, encode, encode_owner, run_row
from bailiwick.journal.queries import each, query_for, runs_where
from bailiwick.journal.rows import ClaimFilter, EncodedEvent, NewRun, Owner, RunClaim, RunRow, StoredEvent
from bailiwick.journal.transaction import Transaction


def create(tx: Transaction, new: NewRun) -> str | None:
    """Create a run; else the id of the one that has its name and key, or its id, already."""
    name = {"workflow": new.workflow, "run_key": new.run_key}
    if tx.one("run.name", {"id": new.id, **name}) is None:
        known = tx.one("run.of_name", name)
        return str(known[0]) if known else new.id
    if add(tx, new):
        tx.points.append("run.created")
        return None
    tx.do("run.free_name", (new.id,))
    return new.id


def add(tx: Transaction, new: NewRun) -> bool:
    """Add a run with its first events; False when it exists already, and then it stays as it is."""
    columns = {
        "id": new.id,
        "workflow": new.workflow,
        "run_key": new.run_key,
        "seq": len(new.first),
        "created_at": new.created_at,
        "priority": new.priority,
        "root_id": new.root_id,
        "definition": new.definition,
        "min_reader": new.min_reader,
    }
    if tx.one("run.insert", columns) is None:
        return False
    names = ("id", "source", "runs_dir", "parent", "generation", "created_at", "kind")
    tx.do("run.insert_fact", {name: getattr(new, name) for name in names})
    tx.do("run.name", {"id": new.id, "workflow": new.workflow, "run_key": new.run_key})
    if new.summary is not None:
        tx.do("run.summarise", (new.id, encode(new.summary)))
    keep_blobs(tx, new.id, new.blobs)
    write_events(tx, new.id, 0, new.first)
    tx.advanced.append((new.id, len(new.first)))
    return True


def write_events(tx: Transaction, run_id: str, after: int, events: Sequence[EncodedEvent]) -> None:
    """Write events behind `after`, with the notes that deletion needs: blobs they use, a run they were forked from."""
    if not events:
        return
    rows = []
    for seq, one in enumerate(events, after + 1):
        check = checksum(run_id, StoredEvent(seq, type=one.type, version=one.version, body=one.body, at=one.at))
        rows.append((run_id, seq, one.type, one.version, one.body, one.at, check))
    tx.do_each("event.insert", rows)
    note_uses(tx, run_id, (one.body for one in events))
    for one in events:
        if one.type == "Forked":
            origin = decode(one.body).get("run")
            if isinstance(origin, str):
                tx.do("run.refer", (run_id, origin))


def load(tx: Transaction, run_id: str) -> RunRow:
    """A run that is known to exist, as this transaction sees it."""
    return run_row(tx.db.execute(runs_where("run.by_id"), {"id": run_id}).fetchall()[0])


def claim(tx: Transaction, owner: Owner, times: tuple[float, float], reader: int, which: ClaimFilter) -> RunRow | None:
    """Take the first run that may be taken, else one of a dead owner; `times` are now and the end of the lease."""
    now, lease_until = times
    bindings: dict[str, object] = {
        "owner": encode_owner(owner),
        "lease_until": lease_until,
        "now": now,
        "reader": reader,
        "host": owner.host,
        "root_id": which.root_id,
        **each(which.without),
    }
    sql = query_for("run.claim", len(which.without))
    dead = [one for one in which.dead if which.run_id in (None, one[0])]
    for run_id, epoch in ((which.run_id, None), *dead):
        rows = tx.db.execute(sql, {**bindings, "run_id": run_id, "dead": epoch}).fetchall()
        if rows:
            tx.points.append("claim.taken")
            return load(tx, str(rows[0][0]))
    return None


def hold(tx: Transaction, run_id: str, claim: RunClaim) -> int:
    """Take a run that was created in this very transaction; gives its epoch."""
    bindings = {"id": run_id, "owner": encode_owner(claim.owner), "lease_until": claim.lease_until}
    (epoch,) = tx.all("run.hold", bindings)[0]
    return int(epoch)


def seize(tx: Transaction, run_id: str, epoch: int, claim: RunClaim) -> RunRow | None:
    """Take what a dead owner held at this epoch, due or not; None where it is another's, nobody's, or over."""
    bindings = {"id": run_id, "owner": encode_owner(claim.owner), "lease_until": claim.lease_until}
    if tx.one("run.seize", {**bindings, "epoch": epoch}) is None:
        return None
    tx.points.append("claim.taken")
    return load(tx, run_id)


def renew(tx: Transaction, leases: Mapping[str, int], lease_until: float) -> set[str]:
    """Move the end of the leases that are still ours; gives the runs of the others."""
    return {run_id for run_id, epoch in leases.items() if tx.one("run.renew", (lease_until, run_id, epoch)) is None}


def release(tx: Transaction, run_id: str, epoch: int, wake_at: float | None) -> bool:
    """Let go of a lease that is still ours; a message that came meanwhile wakes the run, whatever `wake_at` says."""
    if tx.one("run.release", (wake_at, run_id, epoch)) is None:
        return False
    tx.do("run.wake_for_inbox", {"id": run_id})
    tx.points.append("claim.released")
    return True


def archive(tx: Transaction, run_id: str) -> None:
    """Set an ended run aside."""
    _require_ended(run_id, _standing(tx, run_id), "archived")
    tx.do("run.archive", (run_id,))
    tx.do("run.free_name", (run_id,))


def delete(tx: Transaction, run_id: str) -> None:
    """Remove an ended run, the runs it called, and the blobs that no other run uses."""
    _standing(tx, run_id)
    rows = tx.all("run.tree", {"id": run_id})
    for member, status in rows:
        _require_ended(member, status, "deleted")
    members = [member for member, _ in rows]
    inside = set(members)
    leaning = next((row for row in tx.all_of("run.referred", members) if row[0] not in inside), None)
    if leaning:
        raise UsageError(
            f"run {leaning[1]} can't be deleted: run {leaning[0]} was forked from it and reads its journal",
            hint=f"delete run {leaning[0]} first",
            code="BW232",
        )
    digests = sorted({str(digest) for (digest,) in tx.all_of("blob.used_by", members)})
    ledger.forget(tx, members)
    tx.removed += [number for (number,) in tx.all_of("run.slots_of", members)]
    tx.all_of("run.delete", members)
    for digest, is_file in tx.all_of("blob.drop_unused", digests):
        if is_file:
            tx.discarded.append(digest)


def _standing(tx: Transaction, run_id: str) -> str:
    row = tx.one("run.standing", (run_id,))
    if row is None:
        raise NotFound(f"there is no run {run_id}", hint="bailiwick runs")
    return str(row[0])


def _require_ended(run_id: str, status: str, what: str) -> None:
    if status == "ready":
        raise UsageError(
            f"run {run_id} can't be {what}: it is not over",
            hint=f"bailiwick stop {run_id}",
            code="BW231",
        )
