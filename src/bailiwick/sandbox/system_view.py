"""What every sandbox shows of the machine: programs and libraries read-only, a small /etc, the interpreter of the shim.

Nothing of a person, no keys, no sockets, no list of the machine's users.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bailiwick.sandbox.spec import HOME, Bind, SandboxSpec

SHIM = Path("/.bailiwick/shim.py")
"""Where the shim is inside, as it was written."""
COMPILED_SHIM = SHIM.with_suffix(".pyc")
"""Where it is, where it is there ready to run."""
USER = "agent"
HOSTNAME = "sandbox"
_ROOTS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives", "ca-certificates", "crypto-policies/back-ends", "fonts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "mime.types", "os-release", "pki/ca-trust/extracted", "pki/tls/certs",
    "pki/tls/openssl.cnf", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "timezone",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SystemView:
    """Read-only binds, symbolic links (place, what they say) and small files (place, content), in this order."""

    binds: tuple[Bind, ...]
    links: tuple[tuple[Path, str], ...]
    files: tuple[tuple[Path, bytes], ...]


@dataclass(frozen=True, slots=True)
class ShimPython:
    """The Python that runs the shim, by its real path, with the tree it needs where that is not part of the system."""

    program: Path
    tree: Path | None


@cache
def find_interpreter() -> ShimPython:
    """The interpreter that this process runs on, whatever virtual environment it is in."""
    base = Path(os.path.realpath(sys.base_prefix))
    named = base / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = Path(os.path.realpath(named if named.exists() else sys.executable))
    return ShimPython(program, None if base.is_relative_to("/usr") else base)


def system_view(uid: int, gid: int) -> SystemView:
    """The machine as a sandbox with this uid and gid sees it."""
    binds, links = [Bind(Path("/usr"), Path("/usr"))], []
    for name in _ROOTS:
        place = Path("/", name)
        if place.is_symlink():
            links.append((place, os.readlink(place)))  # noqa: PTH115 - as it is written
        elif place.is_dir():
            binds.append(Bind(place, place))
    for name in _ETC:
        place = Path("/etc", name)
        if place.is_symlink() and Path(os.path.realpath(place)).is_relative_to("/usr"):
            links.append((place, os.path.realpath(place)))
        elif place.exists():
            binds.append(Bind(Path(os.path.realpath(place)), place))
    tree = find_interpreter().tree
    if tree is not None:
        binds.append(Bind(tree, tree))
    return SystemView(tuple(binds), tuple(links), _files(uid, gid))


def inner_path(sandbox_spec: SandboxSpec, path: Path) -> Path:
    """Where a path of the host is inside, by the last bind that shows it; raises `ValueError` for what is not shown."""
    real, binds = Path(os.path.realpath(path)), sandbox_spec.shown
    for index in range(len(binds) - 1, -1, -1):
        source = Path(os.path.realpath(binds[index].source))
        if real.is_relative_to(source):
            inside = binds[index].target / real.relative_to(source)
            if not any(inside.is_relative_to(later.target) for later in binds[index + 1 :]):
                return inside
    if any(real.is_relative_to(top) for top in ("/usr", "/bin", "/sbin", "/lib", "/lib64")):
        return real
    raise ValueError(f"{path} can't be seen inside the sandbox")


def shim_file() -> Path:
    """The shim on the host."""
    from bailiwick.sandbox import shim

    return Path(shim.__file__)


@cache
def read_shim() -> bytes:
    """The source of the shim, read once: an upgrade in the middle of a run must not change it."""
    return shim_file().read_bytes()


@cache
def compile_shim() -> bytes:
    """The shim as the interpreter inside, which is of our own version, can run it: to compile it takes it as long."""
    import marshal
    from importlib.util import MAGIC_NUMBER

    code = compile(read_shim(), str(COMPILED_SHIM), "exec", dont_inherit=True)
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def _files(uid: int, gid: int) -> tuple[tuple[Path, bytes], ...]:
    shell = next((s for s in ("/bin/bash", "/bin/sh") if Path(s).exists()), "/bin/sh")
    none = "/usr/sbin/nologin"
    passwd = f"root:x:0:0:root:/:{none}\n{USER}:x:{uid}:{gid}:{USER}:{HOME}:{shell}\nnobody:x:65534:65534::/:{none}\n"
    group = f"root:x:0:\ntty:x:5:\n{USER}:x:{gid}:\nnogroup:x:65534:\n"
    hosts = f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n"
    lookups = "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"
    return (
        (Path("/etc/passwd"), passwd.encode()),
        (Path("/etc/group"), group.encode()),
        (Path("/etc/hosts"), hosts.encode()),
        (Path("/etc/nsswitch.conf"), lookups.encode()),
    )
