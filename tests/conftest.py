"""What holds for every test: no network but loopback, nothing of the person's own set-up, the same examples always."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.needs import look_at_marks

ANY_SPEED = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", ANY_SPEED, max_examples=50, derandomize=True)
settings.register_profile("nightly", ANY_SPEED, max_examples=1000)
settings.register_profile("quick", settings.get_profile("default"), max_examples=10)
settings.load_profile("default")


def pytest_configure() -> None:
    """A shell that starts us in the background has signals ignored, and so would every program that a test starts."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that needs a part which this machine lacks says so."""
    look_at_marks(item)


_OWN_NAMES = ("BAILIWICK_", "AGENT_", "SUPERVISOR_", "XDG_", "GIT_", "CODEX_", "CLAUDE_", "COPILOT_", "ANTHROPIC_")
_OWN_EXACT = ("RETRY_CAP", "INGEST_BASE_URL", "WORKFLOW_DIR", "NO_COLOR", "EDITOR", "VISUAL", "HTTPS_PROXY", "NO_PROXY")


@pytest.fixture(scope="session", autouse=True)
def _nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests see an empty home and none of the variables that change what Bailiwick or git does."""
    import os

    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_OWN_NAMES) or name in _OWN_EXACT:
                patch.delenv(name)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setattr("bailiwick.config.paths.MACHINE", tmp_path_factory.mktemp("etc"))
        yield


def _is_local(family: int, address: object) -> bool:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return True
    host = str(address[0]) if isinstance(address, tuple) and address else ""
    return host in ("localhost", "::1", "0.0.0.0", "::", "") or host.startswith("127.")


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    """A connection to another machine is refused here, whatever the code under test tries."""
    real_connect, real_connect_ex = socket.socket.connect, socket.socket.connect_ex

    def connect(self: socket.socket, address: object) -> None:
        if not _is_local(self.family, address):
            raise ConnectionRefusedError(f"tests reach loopback only, not {address}")
        real_connect(self, address)  # type: ignore[arg-type]

    def connect_ex(self: socket.socket, address: object) -> int:
        if not _is_local(self.family, address):
            raise ConnectionRefusedError(f"tests reach loopback only, not {address}")
        return real_connect_ex(self, address)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        patch.setattr(socket.socket, "connect_ex", connect_ex)
        yield
