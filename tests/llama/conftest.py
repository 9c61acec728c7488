"""A real llama-server with a tiny model; without it a test is skipped with a word, even where a change is judged."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick.testing.polling import until

SERVER = Path(__file__).resolve().parents[2] / ".llama" / "bin" / "llama-server"
LISTENS = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs for the tests of one file, on a port that the system chose."""
    if not SERVER.exists():
        pytest.skip("NOT TESTED: the real llama-server is not there (make llama: on Debian, or why it can't)")
    log = tmp_path_factory.mktemp("llama") / "log"
    options = ["--host", "127.0.0.1", "--port", "0", "--threads", "1", "--parallel", "1", "--no-warmup", "--no-webui"]
    with log.open("wb") as into:
        process = subprocess.Popen(
            [SERVER, *options], env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL, stdout=into, stderr=into
        )
    try:
        until(lambda: process.poll() is not None or LISTENS.search(log.read_text("utf-8", "replace")) is not None)
        said = log.read_text("utf-8", "replace")
        listens = LISTENS.search(said)
        assert process.poll() is None, said
        assert listens is not None, said
        yield listens[1]
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
