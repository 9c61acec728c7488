"""A docker engine for tests: a private one where we are root, else the machine's own; skipped loudly where neither is.

It needs no network: sandboxes have none, and their image is made from nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bailiwick.testing.polling import until
from tests.needs import lack

START, STOP = 60.0, 30.0
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def ask(variables: Mapping[str, str], *words: str) -> str:
    """What the command line of the engine answers; an `AssertionError` where it fails."""
    done = subprocess.run(
        ["docker", *words], env=dict(variables), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def containers(variables: Mapping[str, str]) -> list[str]:
    """The containers that there are, running or not."""
    return ask(variables, "ps", "--all", "--quiet").split()


@contextmanager
def private_engine() -> Iterator[Mapping[str, str]]:
    """An engine of our own, gone at the end with all its files; gives the variables by which it is found.

    Its mounts are made in a namespace of its own, and it is told to stop when we die.
    """
    folder = Path(tempfile.mkdtemp(prefix="bw-engine-"))
    variables = {"PATH": PATH, "HOME": str(folder), "DOCKER_HOST": f"unix://{folder}/socket"}
    apart = ["setpriv", "--pdeathsig", "TERM", "unshare", "--mount", "--propagation", "private"]
    places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    network = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false"]
    command = [*apart, "dockerd", *places, "--host", variables["DOCKER_HOST"], *network]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env={"PATH": PATH}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: process.poll() is not None or _answers(variables), START, "the engine")
        if process.poll() is not None:
            raise OSError((folder / "log").read_text("utf-8", "replace")[-2000:])
        yield variables
    finally:
        process.terminate()
        try:
            process.wait(STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(variables: Mapping[str, str]) -> bool:
    done = subprocess.run(["docker", "version"], env=dict(variables), capture_output=True, check=False, timeout=600)
    return done.returncode == 0


def _missing(why: str) -> None:
    """Without an engine these tests say nothing: on a developer's machine that is skipped, in CI it is a failure."""
    lack(f"the container sandbox: {why}")


@pytest.fixture(scope="session")
def engine() -> Iterator[Mapping[str, str]]:
    """The variables by which an engine is found."""
    if shutil.which("docker", path=PATH) is None:
        _missing("docker is not installed (apt-get install docker.io)")
    machines = {"PATH": PATH, **{name: os.environ[name] for name in ("DOCKER_HOST", "HOME") if name in os.environ}}
    if os.geteuid() == 0 and shutil.which("dockerd", path=PATH) is not None:
        try:
            with private_engine() as variables:
                yield variables
        except OSError as error:
            _missing(f"dockerd does not start: {error}")
    elif _answers(machines):
        yield machines
    else:
        _missing("no engine answers, and only root can start one")
