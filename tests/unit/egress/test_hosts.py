"""Names of hosts: one spelling each, and no way around the list by another one."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bailiwick.egress.hosts import (
    AllowList,
    BadHost,
    HostPort,
    bypasses,
    parse_address,
    parse_host,
    parse_target,
    trouble_with,
)
from bailiwick.egress.proxy import allow_list
from bailiwick.errors import UsageError


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Example.ORG", "example.org"),
        ("example.org.", "example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ.org", "example.org"),
        ("example。org", "example.org"),
        ("a_b.example.org", "a_b.example.org"),
        ("93.184.215.14", "93.184.215.14"),
        ("[2606:2800:21F::1]", "2606:2800:21f::1"),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str) -> None:
    """Upper case, the last dot, other scripts: the list is compared with what would be reached."""
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "example.org..", "example..org", ".example.org", "-a.org", "a-.org", "a b.org"),
        *(
            "user@example.org",
            "user:pw@example.org",
            "example.org/x",
            "example.org?x",
            "example.org#x",
            "ex%61mple.org",
        ),
        *(
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "127.0.0.01",
            "1.2.3.4.5",
            "256.1.1.1",
            "1.2.3.0x4",
        ),
        *("::1", "[::1", "[::1%eth0]", "[fe80::1%1]", "[127.0.0.1]", "[]", "*.org", "a" * 64 + ".org", "a.b" * 90),
        *("example.org\x00", "example.org\r\n", "exa\u200bmple.org/", "１２７.1"),
    ],
)
def test_what_others_might_read_differently_is_no_host(text: str) -> None:
    """Each of these has once led a proxy to let through what its list forbade."""
    with pytest.raises(BadHost):
        parse_host(text)


def test_digits_of_another_script_are_an_address_all_the_same() -> None:
    """They are made plain before it is asked whether this is an address: 127.0.0.1 in wide digits is loopback."""
    assert parse_host("１２７.0.0.１") == "127.0.0.1"


@pytest.mark.parametrize("text", ["a.org", "a.org:", "a.org:0", "a.org:65536", "a.org:+443", "a.org: 443", "a.org:٤٤٣"])
def test_a_tunnel_needs_a_plain_port(text: str) -> None:
    """A port that only some programs can read is no port."""
    with pytest.raises(BadHost):
        parse_target(text)


@given(st.text(max_size=40) | st.from_regex(r"[0-9a-fx.:\[\]]{1,30}", fullmatch=True))
@example("[::ffff:127.0.0.1]:443")
def test_whatever_is_accepted_is_spelled_stably(text: str) -> None:
    """Read again, a host is itself: so what was judged is always what is dialled."""
    try:
        target = parse_target(text, 443)
    except BadHost:
        return
    assert parse_target(str(target)) == target
    assert target.host.isascii()


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "100.127.255.255", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"),
        *("255.255.255.255", "192.0.2.1", "::", "::1", "fe80::1", "fc00::1", "fd12:3456::1", "ff02::1", "fec0::1"),
        *(
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "::8.8.8.8",
        ),
        "2001:db8::1",
    ],
)
def test_an_address_that_is_not_public_is_told(address: str) -> None:
    """Neighbours, ourselves, metadata services, and IPv4 in any wrapping."""
    assert trouble_with(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"])
def test_a_public_address_is_fine(address: str) -> None:
    """The edges of the private ranges lie outside of them."""
    assert trouble_with(ipaddress.ip_address(address)) == ""


def test_the_list_means_the_host_the_port_and_nothing_else() -> None:
    """443 where none is given; `*.` means below, never the domain itself nor what merely ends alike."""
    allow = AllowList.of(["example.org", "*.Example.net", "plain.example:80", "[2606:4700::1]:8443"])
    yes = [("example.org", 443), ("a.example.net", 443), ("a.b.example.net", 443), ("plain.example", 80)]
    no = [
        *(("example.org", 80), ("a.example.org", 443), ("example.net", 443), ("notexample.net", 443)),
        *(("plain.example", 443), ("example.org.evil.net", 443), ("2606:4700::1", 443)),
    ]
    assert [target for target in (*yes, *no) if allow.allows(HostPort(*target))] == yes
    assert allow.allows(parse_target("[2606:4700:0::1]:8443"))


def test_a_private_address_needs_the_operators_own_word() -> None:
    """A host listed by name may lie in the operator's network; a pattern or a public registry may not lead there."""
    allow = AllowList.of(["git.corp.example", "*.wide.example", "10.0.0.9"], ["pypi.org"])
    private = ipaddress.ip_address("10.0.0.8")
    assert allow.objection(HostPort("git.corp.example", 443), private) == ""
    assert allow.objection(HostPort("a.wide.example", 443), private)
    assert allow.objection(HostPort("pypi.org", 443), private)
    assert allow.objection(HostPort("pypi.org", 443), ipaddress.ip_address("10.0.0.9")) == ""


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "224.0.0.1", "0.0.0.0"])
def test_no_name_leads_to_a_metadata_service(address: str) -> None:
    """Whoever runs the name server of a listed host must not get at the machine's cloud identity."""
    allow = AllowList.of(["git.corp.example"])
    assert allow.objection(HostPort("git.corp.example", 443), ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "text", ["", "*", "*.", "https://example.org", "example.org/x", "*.1.2.3.4", "a@b.org", "x:99999"]
)
def test_an_entry_that_means_nothing_is_bad_input(text: str) -> None:
    """The operator hears of it when the list is read, not when a build can't reach its registry."""
    with pytest.raises(UsageError) as caught:
        allow_list([text])
    assert caught.value.code == "BW404"
    assert repr(text) in caught.value.what


@pytest.mark.parametrize(
    ("host", "no_proxy", "without"),
    [
        ("a.corp.example", "corp.example", True),
        ("a.corp.example", " .corp.example , x", True),
        ("a.corp.example", "*.corp.example", True),
        ("notcorp.example", "corp.example", False),
        ("any.example", "*", True),
        ("any.example", "", False),
        ("a.corp.example", ".corp.example:8443", True),
        ("::1", "::1", True),
        ("::2", ":2,::1", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8,broken/99", False),
    ],
)
def test_the_operators_proxy_is_passed_by_for_listed_hosts(host: str, no_proxy: str, without: bool) -> None:
    """As other programs read NO_PROXY."""
    assert bypasses(host, no_proxy) is without


def test_a_name_is_no_address() -> None:
    """Only what is written as an address is judged without asking a name server."""
    assert parse_address("example.org") is None
    assert parse_address("1.2.3.4") is not None
