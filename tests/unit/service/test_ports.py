"""The port: ours, or whose it is."""

from __future__ import annotations

import os

import pytest

from bailiwick.errors import NotReady, UsageError
from bailiwick.service.ports import holder, listen


def test_port_0_takes_a_free_one() -> None:
    """Tests and second services need a port that is surely free."""
    with listen("127.0.0.1", 0) as one, listen("127.0.0.1", 0) as other:
        assert one.getsockname()[1] != other.getsockname()[1] > 0


def test_a_port_in_use_names_its_holder() -> None:
    """`address already in use` sends people searching; the program and its pid does not."""
    with listen("127.0.0.1", 0) as one:
        port = one.getsockname()[1]
        with pytest.raises(NotReady, match=rf"port {port} is in use by .*python.* \(pid {os.getpid()}\)") as caught:
            listen("127.0.0.1", port)
    assert caught.value.exit_code == 8
    assert f"--port {port + 1}" in caught.value.hint


def test_a_free_port_has_no_holder() -> None:
    """A guess would blame somebody."""
    with listen("127.0.0.1", 0) as one:
        port = one.getsockname()[1]
    assert holder(port) == ""


def test_an_address_of_another_machine_is_refused() -> None:
    """The mistake is in the command line, not in the port."""
    with pytest.raises(UsageError, match=r"192\.0\.2\.1:0 can't be used"):
        listen("192.0.2.1", 0)
    with pytest.raises(UsageError, match="no address"):
        listen("a..b", 0)
