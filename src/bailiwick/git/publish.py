"""The ways out of the vault: a branch in the operator's repository, and a push. Both know only `agent/…`."""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bailiwick.errors import Place
from bailiwick.git.objects import Objects
from bailiwick.git.repository import Source, checked_out, is_object_id
from bailiwick.git.runner import GitFailed, GitOptions, failure, file_url
from bailiwick.ids import digest

LONGEST = 200
USER = "x-access-token"
"""The user name that goes with a token where none is given: forges look at the token only."""
PUSH_TIMEOUT = 300.0

_BRANCH = re.compile(r"agent(?:/[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-]))*)+")


@dataclass(frozen=True, slots=True)
class PushRemote:
    """A remote repository and how we log in there; `url` is http or https and holds no password."""

    url: str
    token: str | None = None
    user: str = USER
    ca_file: Path | None = None
    proxy: str | None = None

    def call(self, objects: Objects) -> GitOptions:
        """A call that can reach exactly this kind of address; the token is in its environment, in no argument."""
        scheme = urlsplit(self.url).scheme
        if scheme not in ("http", "https") or "@" in urlsplit(self.url).netloc:
            raise GitFailed(
                "refused",
                "a remote repository is reached by an http(s) address without a password in it",
                "use the https address of the repository and a token",
            )
        config = {"http.proxy": self.proxy or "", "fetch.unpackLimit": "1"}
        hide: tuple[str, ...] = ()
        if self.ca_file is not None:
            config["http.sslCAInfo"] = str(self.ca_file)
        if self.token:
            coded = base64.b64encode(f"{self.user}:{self.token}".encode()).decode()
            config["http.extraHeader"] = f"Authorization: Basic {coded}"
            hide = (self.token, coded)
        return objects.call(config=config, transports=(scheme,), timeout=PUSH_TIMEOUT, hide=hide)


def branch_ref(name: str) -> str:
    """The full name of a branch of ours; raises for any name that is not literally `agent/…`."""
    reserved = any(part.endswith(".lock") for part in name.split("/"))
    if len(name) > LONGEST or reserved or _BRANCH.fullmatch(name) is None:
        raise GitFailed("refused", f"{name!r} is not a branch of ours", "only branches below agent/ are written")
    return f"refs/heads/{name}"


async def ref_value(objects: Objects, source: Source, ref: str) -> str | None:
    """Where a ref of the operator's repository stands."""
    done = await objects.git.run("rev-parse", "--verify", "-q", "--end-of-options", ref, call=source.call())
    found = os.fsdecode(done.stdout).strip()
    return found if is_object_id(found) else None


async def set_branch(objects: Objects, source: Source, name: str, commit: str, expect: str | None) -> None:
    """Put a branch of the operator's repository on a commit of the vault, if it is where `expect` says.

    A branch that is already there counts as done. Index, work trees and HEAD of the operator are not touched.
    """
    ref = branch_ref(name)
    current = await ref_value(objects, source, ref)
    if current == commit:
        return
    await _check_free(objects, source, name=name, current=current, expect=expect)
    options = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--quiet", "--no-auto-maintenance")
    call = source.call(transports=("file",), config={"fetch.unpackLimit": "1"})
    await objects.git.out("fetch", *options, objects.git.serving, file_url(objects.git_dir), commit, call=call)
    await _update(objects, source, ("update-ref", "--no-deref", ref, commit, expect or "0" * len(commit)), name)


async def drop_branch(objects: Objects, source: Source, name: str, expect: str) -> None:
    """Delete a branch of the operator's repository, if it is where `expect` says; one that is gone counts as done."""
    ref = branch_ref(name)
    current = await ref_value(objects, source, ref)
    if current is None:
        return
    await _check_free(objects, source, name=name, current=current, expect=expect)
    await _update(objects, source, ("update-ref", "--no-deref", "-d", ref, expect), name)


async def _check_free(objects: Objects, source: Source, name: str, current: str | None, expect: str | None) -> None:
    place = Place(str(source.root))
    if current != expect:
        stands = f"is at {current[:12]}" if current else "is not there"
        wanted = f"at {expect[:12]}" if expect else "not there"
        raise GitFailed(
            "rejected",
            f"branch '{name}' {stands}, expected {wanted}: it was changed by someone else",
            f"look at it: git log {name}",
            place=place,
        )
    if f"refs/heads/{name}" in await checked_out(objects.git, source):
        raise GitFailed(
            "refused", f"branch '{name}' is checked out in a work tree", "switch to another branch there", place=place
        )


async def _update(objects: Objects, source: Source, args: tuple[str, ...], name: str) -> None:
    call = source.call()
    done = await objects.git.run(*args, call=call)
    if done.code == 0:
        return
    if await ref_value(objects, source, branch_ref(name)) == args[-2]:
        return  # a git that outlived a killed process was first
    if b"but expected" in done.stderr or b"already exists" in done.stderr or b"cannot lock ref" in done.stderr:
        raise GitFailed(
            "rejected",
            f"branch '{name}' was changed by someone else just now",
            f"look at it: git log {name}",
            place=Place(str(source.root)),
        )
    raise failure(args[0], done, call)


async def push(objects: Objects, peer: PushRemote, commit: str, branch: str, expect: str | None) -> None:
    """Put a remote branch on a commit, if it is where `expect` says (None: not there yet).

    What is there must be a commit that we pushed or that the new one builds upon. A branch that is already there
    counts as done.
    """
    ref = branch_ref(branch)
    if not is_object_id(commit):
        raise GitFailed("refused", f"{commit!r} is not the id of a commit")
    record = f"refs/bailiwick/pushed/{digest(peer.url)[:16]}/{branch}"
    if expect is not None and not await _ours(objects, record, expect, commit):
        raise GitFailed(
            "rejected",
            f"branch '{branch}' holds commits that are not ours",
            "build upon them, never over them",
        )
    lease = f"--force-with-lease={ref}:{expect or ''}"
    options = ("--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--no-recurse-submodules", "--no-thin")
    call = peer.call(objects)
    done = await objects.git.run("push", *options, lease, peer.url, f"{commit}:{ref}", call=call)
    if done.code != 0:
        error = failure("push", done, call)
        if error.kind != "rejected" or await remote_value(objects, peer, branch) != commit:
            raise error  # else a push of the same commit came first: a git may outlive a killed process
    await objects.git.out("update-ref", record, commit, call=objects.call())


async def _ours(objects: Objects, record: str, expect: str, commit: str) -> bool:
    call = objects.call()
    pushed = await objects.git.run("rev-parse", "--verify", "-q", record, call=call)
    if os.fsdecode(pushed.stdout).strip() == expect:
        return True
    return (await objects.git.run("merge-base", "--is-ancestor", expect, commit, call=call)).code == 0


async def fetch(objects: Objects, peer: PushRemote, ref: str) -> str:
    """Bring a branch (or `HEAD`, the default one) of a remote repository into the vault; the id of its commit."""
    full = ref if ref == "HEAD" or ref.startswith("refs/") else f"refs/heads/{ref}"
    if not re.fullmatch(r"[A-Za-z0-9_][^\s~^:?*\[\\\x00-\x1f\x7f]*", full) or ".." in full:
        raise GitFailed("refused", f"{ref!r} is not the name of a branch")
    kept = f"refs/bailiwick/remote/{digest(peer.url)[:16]}/{digest(full)[:16]}"
    options = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--quiet")
    await objects.git.out("fetch", *options, peer.url, f"+{full}:{kept}", call=peer.call(objects))
    return await objects.git.line("rev-parse", "--verify", f"{kept}^{{commit}}", call=objects.call())


async def remote_value(objects: Objects, peer: PushRemote, branch: str) -> str | None:
    """Where a branch of a remote repository stands, None where it has none of that name."""
    ref = f"refs/heads/{branch}"
    raw = await objects.git.out("ls-remote", "--refs", "--", peer.url, ref, call=peer.call(objects))
    lines = [line.split("\t") for line in os.fsdecode(raw).splitlines()]
    return next((found[0] for found in lines if found[-1] == ref), None)
