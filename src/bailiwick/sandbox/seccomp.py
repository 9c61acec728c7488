"""The filter of system calls inside a sandbox, as the classic BPF program that the kernel takes.

Everything is allowed but what reaches out of a sandbox: namespaces, mounts, other processes' memory, kernel keys and
modules, other machines' protocols, typing into a terminal. A call of another machine's numbering ends the process.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
ALLOW, KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000

_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag that clone(2) knows
_TERMINAL_TRICKS = (0x5412, 0x541C)  # TIOCSTI types into a terminal, TIOCLINUX pastes
_FAMILIES = (1, 2, 10)  # unix, IPv4, IPv6
_NETLINK = 16  # only its protocol 0, by which programs list their own addresses
_QUERY = 0xFFFFFFFF  # personality(2) asked, not set

_DENIED = {  # whatever their arguments are: name: (x86_64, aarch64); None where there is no such call
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "bpf": (321, 280), "perf_event_open": (298, 241),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "userfaultfd": (323, 282),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "iopl": (172, None), "ioperm": (173, None),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "syslog": (103, 116), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "lookup_dcookie": (212, 18), "vhangup": (153, 58),
    "fanotify_init": (300, 262), "sethostname": (170, 161), "setdomainname": (171, 162), "modify_ldt": (154, None),
    "uselib": (134, None), "nfsservctl": (180, 42), "move_pages": (279, 239), "migrate_pages": (256, 238),
}  # fmt: skip
_LOOKED_AT = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "socket": (41, 198),
    "personality": (135, 92),
}

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The kernel's name of a machine, with the column of the tables above."""


def build_filter(machine: str = "") -> bytes | None:
    """The program for a kind of machine, this one where none is named; None for one whose numbers aren't known."""
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    arch, column = known
    program = [_load(_ARCH), _jump(_EQUAL, arch, past=1), _answer(KILL)]
    program += [_load(_NUMBER), _jump(_AT_LEAST, _X32, otherwise=1), _answer(KILL)]
    for numbers in _DENIED.values():
        number = numbers[column]
        if number is not None:
            program += [_jump(_EQUAL, number, otherwise=1), _refuse(errno.EPERM)]
    for name, body in _looks():
        program += [_jump(_EQUAL, _LOOKED_AT[name][column], otherwise=len(body)), *body]
    return b"".join([*program, _answer(ALLOW)])


def _looks() -> Iterator[tuple[str, list[bytes]]]:
    """The calls whose arguments count. glibc falls back from clone3, whose flags lie in memory, to clone."""
    allow, refuse = _answer(ALLOW), _refuse(errno.EPERM)
    yield "clone", [_argument(0), _jump(_ANY_BIT, _NEW_NAMESPACES, otherwise=1), refuse, allow]
    yield "clone3", [_refuse(errno.ENOSYS)]
    tricks = [line for trick in _TERMINAL_TRICKS for line in (_jump(_EQUAL, trick, otherwise=1), refuse)]
    yield "ioctl", [_argument(1), *tricks, allow]
    families = [line for family in _FAMILIES for line in (_jump(_EQUAL, family, otherwise=1), allow)]
    netlink = [_jump(_EQUAL, _NETLINK, otherwise=3), _argument(2), _jump(_EQUAL, 0, otherwise=1), allow]
    yield "socket", [_argument(0), *families, *netlink, refuse]
    plain = [line for value in (0, _QUERY) for line in (_jump(_EQUAL, value, otherwise=1), allow)]
    yield "personality", [_argument(0), *plain, refuse]


def _line(code: int, value: int, past: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, past, otherwise, value)


def _load(offset: int) -> bytes:
    return _line(_LOAD, offset)


def _argument(index: int) -> bytes:
    """Load the lower half of an argument; both machines keep it first, and these calls look at no more of it."""
    return _load(_ARGUMENTS + 8 * index)


def _jump(test: int, value: int, past: int = 0, otherwise: int = 0) -> bytes:
    """Go on, past so many lines if the test holds, past `otherwise` many if it does not."""
    return _line(test, value, past, otherwise)


def _answer(what: int) -> bytes:
    return _line(_RETURN, what)


def _refuse(number: int) -> bytes:
    return _answer(_ERROR | number)
