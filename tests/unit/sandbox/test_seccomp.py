"""The filter of system calls, run by a small machine that does what the kernel would."""

from __future__ import annotations

import errno
import struct
import sys

import pytest

from bailiwick.sandbox import seccomp
from bailiwick.sandbox.seccomp import ALLOW, KILL, build_filter

X86, ARM = 0xC000003E, 0xC00000B7
MACHINES = {"x86_64": X86, "aarch64": ARM}
COLUMN = {"x86_64": 0, "aarch64": 1}
NEW_USER, SIGCHLD, VM = 0x10000000, 17, 0x100
TIOCSTI, TIOCLINUX, TIOCGWINSZ = 0x5412, 0x541C, 0x5413


def _verdict(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the program says to a call."""
    program = build_filter(machine)
    assert program is not None
    lines = list(struct.iter_unpack("=HBBI", program))
    six = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, MACHINES[machine] if arch is None else arch, 0, *six)
    at, held = 0, 0
    while True:
        code, past, otherwise, value = lines[at]
        at += 1
        match code:
            case 0x20:
                held = struct.unpack_from("=I", data, value)[0]
            case 0x06:
                return int(value)
            case _:
                holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
                at += past if holds else otherwise


def _refused(verdict: int) -> int:
    """With which error a call is refused, 0 where it is not."""
    return verdict & 0xFFFF if verdict & 0xFFFF0000 == 0x00050000 else 0


def _number(name: str, machine: str) -> int:
    number = {**seccomp._DENIED, **seccomp._LOOKED_AT}[name][COLUMN[machine]]
    assert number is not None
    return number


@pytest.mark.parametrize("machine", MACHINES)
def test_what_reaches_out_is_refused(machine: str) -> None:
    """Namespaces, mounts, other processes, the kernel itself."""
    there = [name for name in seccomp._DENIED if seccomp._DENIED[name][COLUMN[machine]] is not None]
    assert len(there) > 50
    assert {_refused(_verdict(machine, _number(name, machine))) for name in there} == {errno.EPERM}


@pytest.mark.parametrize(
    ("machine", "plain"), [("x86_64", (0, 1, 2, 57, 59, 231, 257)), ("aarch64", (56, 57, 63, 64, 93, 221))]
)
def test_ordinary_calls_are_allowed(machine: str, plain: tuple[int, ...]) -> None:
    """A filter that is in the way would be switched off by somebody."""
    assert {_verdict(machine, number) for number in plain} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_can_be_made_but_no_namespace(machine: str) -> None:
    """The same call does both; the newer one, whose flags can't be seen, does not exist, so that the older is used."""
    clone = _number("clone", machine)
    assert _verdict(machine, clone, SIGCHLD) == ALLOW
    assert _verdict(machine, clone, VM | SIGCHLD) == ALLOW
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, NEW_USER, 0x20000000, 0x40000000):
        assert _refused(_verdict(machine, clone, flag | SIGCHLD)) == errno.EPERM
    assert _refused(_verdict(machine, _number("clone3", machine))) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_nobody_types_into_a_terminal(machine: str) -> None:
    """What is typed into a person's terminal is executed by their shell; upper bits of the argument don't count."""
    ioctl = _number("ioctl", machine)
    assert _verdict(machine, ioctl, 0, TIOCGWINSZ) == ALLOW
    assert _refused(_verdict(machine, ioctl, 0, TIOCSTI)) == errno.EPERM
    assert _refused(_verdict(machine, ioctl, 0, TIOCSTI | 1 << 32)) == errno.EPERM
    assert _refused(_verdict(machine, ioctl, 0, TIOCLINUX)) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_are_of_few_families(machine: str) -> None:
    """Packets, virtual machines, the kernel's ciphers: holes were found in all of them."""
    call = _number("socket", machine)
    assert [family for family in range(64) if _verdict(machine, call, family, 1, 0) == ALLOW] == [1, 2, 10, 16]
    assert _refused(_verdict(machine, call, 16, 3, 9)) == errno.EPERM, "netlink is for one's own addresses only"


@pytest.mark.parametrize("machine", MACHINES)
def test_a_personality_can_be_asked_for_but_not_changed(machine: str) -> None:
    """Some of them switch protections of memory off."""
    call = _number("personality", machine)
    assert _verdict(machine, call, 0xFFFFFFFF) == ALLOW
    assert _verdict(machine, call, 0) == ALLOW
    assert _refused(_verdict(machine, call, 0x0400000)) == errno.EPERM


def test_calls_of_another_numbering_end_the_process() -> None:
    """The same machine has other numbers for older programs, by which every rule here could be passed by."""
    assert _verdict("x86_64", 1, arch=0x40000003) == KILL
    assert _verdict("x86_64", 0x40000000 | 272) == KILL
    assert _verdict("aarch64", 1, arch=X86) == KILL


def test_an_unknown_machine_has_no_filter() -> None:
    """Whoever asks says so, instead of a filter with wrong numbers."""
    assert build_filter("riscv64") is None


def test_the_kernel_takes_it() -> None:
    """It takes at most 4096 lines, in the order of bytes of the machine."""
    program = build_filter("x86_64")
    assert program is not None
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096
    assert sys.byteorder == "little"
