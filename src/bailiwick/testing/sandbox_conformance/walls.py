# ruff: noqa: S101 - a conformance suite asserts
"""Rights, network and limits."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.sandbox.spec import DOORS, MB, SandboxLimits
from bailiwick.testing.sandbox_conformance.stage import (
    PATH,
    SandboxFixture,
    answer_once,
    new_mark,
    python,
)


class Walls(SandboxFixture):
    """Rights, network and limits."""

    def test_it_has_no_rights_of_its_own(self, tmp_path: Path) -> None:
        """No capability, none to gain, and never root."""
        self.needs_walls()
        end = self.play(tmp_path, ("sh", "-c", "id -u; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status"))
        uid, *lines = end.stdout.decode().split("\n")
        status = dict(line.split(":\t") for line in lines if line)
        assert int(uid) != 0
        assert {int(value, 16) for name, value in status.items() if name.startswith("Cap")} == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")

    def test_other_processes_are_not_seen_and_process_1_tells_nothing(self, tmp_path: Path) -> None:
        """Our environment holds tokens; a process that can be seen can be asked."""
        self.needs_walls()
        env = {"PATH": PATH, EFFECT_MARK: new_mark(), "TOKEN": "secret"}
        code = (
            "import glob, json\nfound = []\nfor f in glob.glob('/proc/[0-9]*/environ'):\n"
            "  try: found.append(open(f).read())\n  except OSError: pass\n"
            "print(json.dumps([len(glob.glob('/proc/[0-9]*')), [e for e in found if 'TOKEN=secret' not in e]]))"
        )
        count, strangers = json.loads(self.play(tmp_path, python(code), env=env).stdout)
        assert count <= 3
        told = {variable for environ in strangers for variable in environ.split("\0")}
        of_the_shell = {variable for variable in told if variable.startswith("_=")}
        assert told - of_the_shell <= {"", f"{EFFECT_MARK}={env[EFFECT_MARK]}"}

    def test_there_is_no_network(self, tmp_path: Path) -> None:
        """Agent-written code reaches nobody, our own loopback services included."""
        self.needs_walls()
        code = (
            "import socket, sys\n"
            "for place in [('127.0.0.1', int(sys.argv[1])), ('192.0.2.1', 80)]:\n"
            "  s = socket.socket(); s.settimeout(5); print(s.connect_ex(place) != 0)\n"
            "print([name for _, name in socket.if_nameindex()])"
        )
        with socket.create_server(("127.0.0.1", 0)) as server:
            end = self.play(tmp_path, python(code, str(server.getsockname()[1])))
        assert end.stdout.split(b"\n")[:2] == [b"True", b"True"], end
        assert b"eth" not in end.stdout

    def test_a_door_leads_from_inside_to_us(self, tmp_path: Path) -> None:
        """The broker of models answers on a listener that only this sandbox can reach."""
        self.needs_walls()
        heard: dict[str, asyncio.Task[None]] = {}

        def on_door(name: str, listener: socket.socket) -> None:
            heard[name] = asyncio.get_running_loop().create_task(answer_once(listener))

        code = (
            f"import socket; s = socket.create_connection(('127.0.0.1', {DOORS['model']}), 20); "
            "s.sendall(b'ping'); print(s.recv(9))"
        )
        sandbox_spec = replace(self.sandbox_spec(tmp_path), doors=("model", "egress"))
        end = self.play(tmp_path, python(code), sandbox_spec=sandbox_spec, on_door=on_door)
        assert (end.stdout, sorted(heard)) == (b"b'pong'\n", ["egress", "model"]), end

    def test_memory_is_bounded(self, tmp_path: Path) -> None:
        """A runaway program must not take the machine with it."""
        limits = SandboxLimits(memory=96 * MB)
        end = self.play(tmp_path, python("b = bytearray(300 << 20); print('got it')"), limits=limits)
        assert end.code != 0
        assert b"got it" not in end.stdout

    def test_processes_are_bounded(self, tmp_path: Path) -> None:
        """A fork bomb ends by itself."""
        if not self.bounds:
            pytest.skip("processes are not bounded here")
        code = (
            "import os, signal\nmade = []\ntry:\n  while len(made) < 200:\n    pid = os.fork()\n"
            "    if pid == 0: signal.pause()\n    made.append(pid)\n"
            "except OSError: pass\nfor pid in made: os.kill(pid, 9)\nprint(len(made))"
        )
        end = self.play(tmp_path, python(code), limits=SandboxLimits(processes=20))
        assert 5 <= int(end.stdout) <= 24, end

    def test_files_are_bounded(self, tmp_path: Path) -> None:
        """In size and in number."""
        code = (
            "import os, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); f = os.open('f', 0o102)\n"
            "try:\n  os.truncate(f, 9 << 20)\nexcept OSError as e: print(e.errno)\n"
            "try:\n  while True: os.open('/dev/null', 0)\nexcept OSError as e: print(e.errno)"
        )
        end = self.play(tmp_path, python(code), limits=SandboxLimits(file_size=4 * MB, open_files=40))
        assert end.stdout.split()[:2] == [b"27", b"24"], end

    def test_the_temporary_directory_is_bounded(self, tmp_path: Path) -> None:
        """It is made of memory."""
        self.needs_walls()
        code = (
            "f = open('/tmp/f', 'wb', 0)\ntry:\n  for _ in range(40): f.write(bytes(1 << 20))\n"
            "except OSError as e: print(e.errno)"
        )
        assert self.play(tmp_path, python(code), limits=SandboxLimits(tmp=8 * MB)).stdout == b"28\n"
