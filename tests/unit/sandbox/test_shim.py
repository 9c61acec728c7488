"""The first process inside a sandbox, run on its own here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.processes.children import read_stat
from bailiwick.sandbox import shim
from bailiwick.sandbox.entered import pack
from bailiwick.sandbox.shim import LOST, MISSING, UNUSABLE, unpack
from bailiwick.testing.polling import until

PATH = "PATH=/usr/bin:/bin"
Fields = list[tuple[str, str]]


def _letter(tmp_path: Path, fields: Fields) -> str:
    file = tmp_path / "letter"
    file.write_bytes(pack([("cwd", str(tmp_path)), *fields]))
    return str(file)


def _start(tmp_path: Path, fields: Fields, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", str(Path(shim.__file__)), _letter(tmp_path, fields)]
    return subprocess.Popen(
        command, pass_fds=pass_fds, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )


def _run(
    tmp_path: Path, argv: tuple[str, ...], *fields: tuple[str, str], pass_fds: tuple[int, ...] = ()
) -> tuple[int, bytes, bytes]:
    process = _start(tmp_path, [*(("arg", word) for word in argv), ("env", PATH), *fields], pass_fds)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


@given(st.lists(st.tuples(st.sampled_from(["arg", "env", "cwd"]), st.binary().map(lambda b: b.replace(b"\0", b"")))))
def test_a_letter_is_read_as_it_was_written(fields: list[tuple[str, bytes]]) -> None:
    """Arguments are of any bytes, and their order is theirs."""
    read = unpack(pack(fields))
    for tag in ("arg", "env", "cwd"):
        assert read.get(tag, []) == [value for name, value in fields if name == tag]


def test_a_value_with_a_null_byte_is_refused() -> None:
    """It would begin a field of its own, such as another variable."""
    with pytest.raises(OSError, match="null"):
        pack([("arg", "x\0env=LD_PRELOAD=evil.so")])


def test_it_becomes_the_program(tmp_path: Path) -> None:
    """The program has the number of the shim, its directory and exactly its variables."""
    code, out, _ = _run(tmp_path, ("sh", "-c", "pwd; cat /proc/$$/environ; exit 3"), ("env", "A=b c"))
    assert (code, out) == (3, f"{tmp_path}\n{PATH}\0A=b c\0".encode())


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("no-such-program", MISSING, b"no-such-program: not found"),
        ("/no/such/program", MISSING, b"/no/such/program: not found"),
        ("/etc/passwd/x", MISSING, b"not found"),
        ("/etc/passwd", UNUSABLE, b"Permission denied"),
    ],
)
def test_a_program_that_can_t_be_started_is_said_so(tmp_path: Path, name: str, code: int, words: bytes) -> None:
    """Who reads the exit code has to tell it from the program's own."""
    found, _, err = _run(tmp_path, (name,))
    assert found == code
    assert err.startswith(b"bailiwick-shim: ")
    assert words in err


def test_a_script_without_its_interpreter_is_said_so(tmp_path: Path) -> None:
    """ "Not found" about a file that everybody can see would send people the wrong way."""
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    code, _, err = _run(tmp_path, (str(script),))
    assert code == MISSING
    assert b"interpreter" in err


def test_a_directory_that_can_t_be_entered_is_said_so(tmp_path: Path) -> None:
    """And the program is not started elsewhere."""
    (tmp_path / "letter").write_bytes(pack([("arg", "touch"), ("arg", "x"), ("env", PATH), ("cwd", "/no/such")]))
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(Path(shim.__file__)), str(tmp_path / "letter")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == UNUSABLE
    assert b"/no/such: can't be entered" in done.stderr


def test_only_what_is_kept_stays_open(tmp_path: Path) -> None:
    """A descriptor of the host is a way around every wall."""
    reader, kept = os.pipe()
    other = os.open("/dev/null", os.O_RDONLY)
    try:
        code = f"import os; os.write({kept}, repr(sorted(map(int, os.listdir('/proc/self/fd')))).encode())"
        argv = (sys.executable, "-I", "-S", "-c", code)
        _run(tmp_path, argv, ("keep", str(kept)), pass_fds=(kept, other))
        listing = 3 if kept != 3 else 4
        assert os.read(reader, 99) == repr(sorted([0, 1, 2, listing, kept])).encode()
    finally:
        for number in (reader, kept, other):
            os.close(number)


@pytest.mark.parametrize(("program", "said"), [("true", b"1"), ("no-such-program", b"1")])
def test_it_says_when_only_the_program_is_left_to_start(tmp_path: Path, program: str, said: bytes) -> None:
    """So a failure of the sandbox is never taken for one of the program."""
    reader, writer = os.pipe()
    _run(tmp_path, (program,), ("ready", str(writer)), pass_fds=(writer,))
    os.close(writer)
    assert os.read(reader, 9) == said
    os.close(reader)


def test_a_failure_before_the_program_is_not_said_to_be_ready(tmp_path: Path) -> None:
    """The other half of the promise."""
    reader, writer = os.pipe()
    code, _, err = _run(tmp_path, ("true",), ("limit", "nonsense=1"), ("ready", str(writer)), pass_fds=(writer,))
    os.close(writer)
    assert (code, os.read(reader, 9)) == (UNUSABLE, b"")
    assert b"could not be made ready" in err
    os.close(reader)


def test_limits_hold_for_the_program_and_can_t_be_lifted(tmp_path: Path) -> None:
    """A soft limit alone would be the program's to lift."""
    _, out, _ = _run(
        tmp_path, ("sh", "-c", "ulimit -Hn; ulimit -Sn; ulimit -c"), ("limit", "nofile=77"), ("limit", "core=0")
    )
    assert out.split() == [b"77", b"77", b"0"]


def test_ignored_signals_are_the_program_s_again(tmp_path: Path) -> None:
    """Python ignores SIGPIPE, and what stands around a sandbox ignores TERM; a program expects neither."""
    _, out, _ = _run(tmp_path, ("grep", "SigIgn", "/proc/self/status"))
    ignored = int(out.split()[1], 16)
    assert [number for number in (2, 13, 15, 25) if ignored >> (number - 1) & 1] == []


def test_doors_are_sent_by_name_and_the_link_is_closed_before_the_program(tmp_path: Path) -> None:
    """A program that had the link could send listeners of its own making."""
    near, far = socket.socketpair()
    with near, far, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        fields = (("link", str(far.fileno())), ("door", f"model={port}"))
        code, out, err = _run(tmp_path, ("sh", "-c", "ls /proc/self/fd | wc -l"), *fields, pass_fds=(far.fileno(),))
        assert (code, out) == (0, b"4\n"), err
        far.close()
        names, numbers, _, _ = socket.recv_fds(near, 99, 9)
        with socket.socket(fileno=numbers[0]) as listener:
            assert (names, listener.getsockname()) == (b"model\n", ("127.0.0.1", port))
        assert near.recv(9) == b""


def test_descriptors_come_over_a_link_to_a_path(tmp_path: Path) -> None:
    """A container inherits nothing: it is handed what it is to have."""
    place = tmp_path / "link"
    reader, writer = os.pipe()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        fields = [
            ("arg", "sh"),
            ("arg", "-c"),
            ("arg", "echo hello >&9"),
            ("env", PATH),
            ("take", "9"),
            ("link", str(place)),
        ]
        process = _start(tmp_path, fields)
        line, _ = server.accept()
        with line:
            socket.send_fds(line, [b"x"], [writer])
            process.communicate(timeout=600)
    os.close(writer)
    assert os.read(reader, 99) == b"hello\n"
    os.close(reader)


def test_a_shim_that_stays_passes_the_exit_code_on(tmp_path: Path) -> None:
    """It is the first process of a container, so its code is what the engine tells."""
    near, far = socket.socketpair()
    with near, far:
        fields = (("link", str(far.fileno())), ("stay", "1"))
        assert _run(tmp_path, ("sh", "-c", "exit 9"), *fields, pass_fds=(far.fileno(),))[0] == 9
        assert _run(tmp_path, ("sh", "-c", "kill -9 $$"), *fields, pass_fds=(far.fileno(),))[0] == 137


def test_a_shim_that_stays_ends_the_program_when_the_host_is_gone(tmp_path: Path) -> None:
    """A container does not end with the process that asked for it."""
    near, far = socket.socketpair()
    script = f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 60"
    fields = [("arg", "sh"), ("arg", "-c"), ("arg", script), ("env", PATH), ("link", str(far.fileno())), ("stay", "1")]
    process = _start(tmp_path, fields, (far.fileno(),))
    far.close()
    until((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    near.close()
    process.communicate(timeout=600)
    assert process.returncode == LOST
    until(lambda: (stat := read_stat(pid)) is None or stat.dead)  # an orphan: nobody may ever reap it
