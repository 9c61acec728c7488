# ruff: noqa: S101 - a conformance suite asserts
"""What a program is given and what comes back."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.errors import NotReady
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.sandbox.spec import INNER, Bind
from bailiwick.testing.sandbox_conformance.stage import (
    PATH,
    WORDS,
    SandboxFixture,
    new_mark,
    python,
)


class Plain(SandboxFixture):
    """What a program is given and what comes back."""

    def test_output_and_exit_code_are_the_program_s(self, tmp_path: Path) -> None:
        """The plain case."""
        end = self.play(tmp_path, ("sh", "-c", "echo out; echo err >&2; exit 3"))
        assert (end.code, end.stdout, end.stderr) == (3, b"out\n", b"err\n")

    def test_a_killed_program_is_no_success(self, tmp_path: Path) -> None:
        """Sandboxes pass a signal on as 128 and its number."""
        assert self.play(tmp_path, ("sh", "-c", "kill -9 $$")).code in (-9, 137)

    def test_it_says_that_it_works(self, tmp_path: Path) -> None:
        """What works here is found out by trying."""
        standing = asyncio.run(self.ready_sandbox(tmp_path).check())
        assert standing.ok, standing
        assert standing.found
        assert standing.unprotected, "nothing protects from everything, and that has to be said"

    def test_arguments_and_input_arrive_as_they_are(self, tmp_path: Path) -> None:
        """They are data: no shell and no option parser on the way may read them."""
        code = "import os, sys; os.write(1, '\\0'.join(sys.argv[1:]).encode() + b'|' + os.read(0, 99))"
        end = self.play(tmp_path, python(code, *WORDS), stdin=b"in\0put")
        assert end.stdout.decode() == "\0".join(WORDS) + "|in\0put"

    def test_the_environment_is_exactly_what_was_given(self, tmp_path: Path) -> None:
        """No variable of the operator gets in, also none that the sandbox would set by itself."""
        env = {"PATH": PATH, "A": "b=c", "EMPTY": "", EFFECT_MARK: new_mark()}
        end = self.play(tmp_path, ("cat", "/proc/self/environ"), env=env)
        assert dict(v.split("=", 1) for v in end.stdout.decode().rstrip("\0").split("\0")) == env

    def test_an_argument_with_a_null_byte_is_an_os_error(self, tmp_path: Path) -> None:
        """Text comes from agents; who starts processes expects this error for what no process can be given."""
        with pytest.raises(OSError, match="null"):
            self.play(tmp_path, ("echo", "a\0b"))

    def test_open_files_of_ours_are_not_inherited(self, tmp_path: Path) -> None:
        """The database and the keys are open in our process."""
        ours = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(ours, True)
        try:
            end = self.play(tmp_path, python("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"))
        finally:
            os.close(ours)
        assert end.stdout == b"[0, 1, 2]\n"

    def test_a_descriptor_that_is_passed_has_the_same_number(self, tmp_path: Path) -> None:
        """The gate reads outcomes from a pipe whose number it tells."""
        reader, writer = os.pipe()
        far = os.dup2(writer, 61)
        try:
            self.play(tmp_path, python(f"import os; os.write({far}, b'hello')"), pass_fds=(far,))
            assert os.read(reader, 99) == b"hello"
        finally:
            for number in (reader, writer, far):
                os.close(number)

    def test_a_missing_program_is_127_and_an_unusable_one_126(self, tmp_path: Path) -> None:
        """As every shell says it, with a word that tells it from a program's own exit code."""
        missing = self.play(tmp_path, ("no-such-program", "x"))
        assert missing.code == 127
        assert b"bailiwick-shim: no-such-program: not found" in missing.stderr
        assert self.play(tmp_path, ("/etc/passwd",)).code == 126

    def test_a_missing_source_is_refused_before_anything_starts(self, tmp_path: Path) -> None:
        """A sandbox that shows less than was asked for would give wrong results."""
        if not self.isolates:
            pytest.skip("nothing is mounted here")
        sandbox_spec = replace(self.sandbox_spec(tmp_path), binds=(Bind(tmp_path / "nowhere", INNER),))
        with pytest.raises(NotReady, match="nowhere"):
            self.play(tmp_path, ("true",), sandbox_spec=sandbox_spec)
