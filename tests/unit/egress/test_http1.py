"""The one reader of HTTP, with h11 as a second opinion: whatever ours accepts, h11 reads in the same way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import h11
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from bailiwick.agents.broker.server import RULES as BROKER
from bailiwick.egress.http1 import (
    LAST_CHUNK,
    HeaderFields,
    PeerBroken,
    RequestRefused,
    RequestRules,
    chunk,
    head_of,
    parse_request,
    parse_response,
    pieces,
    read_head,
    status_line,
)
from bailiwick.egress.proxy import RULES as PROXY

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader makes of the bytes of a connection; `after` is what it takes for no part of the request."""

    method: str
    target: str
    fields: Fields
    body: bytes
    after: bytes


def ours(raw: bytes, rules: RequestRules) -> Reading | None:
    """What our reader says; None where it refuses."""

    async def read() -> Reading | None:
        reader = asyncio.StreamReader(limit=1 << 20)
        reader.feed_data(raw)
        reader.feed_eof()
        try:
            head = await read_head(reader)
            if head is None:
                return None
            request = parse_request(head, rules)
            body = b"".join([data async for data in pieces(reader, request.length)])
        except (RequestRefused, PeerBroken):
            return None
        scheme = "http://" if request.authority and request.target else ""
        target = f"{scheme}{request.authority}{request.target}"
        return Reading(request.method, target, request.fields.pairs, body, await reader.read())

    return asyncio.run(read())


def theirs(raw: bytes) -> Reading | None:
    """What h11 says; None where it refuses."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(raw)
    connection.receive_data(b"")
    request, body = None, b""
    try:
        while not isinstance(found := connection.next_event(), h11.EndOfMessage):
            if isinstance(found, h11.Request):
                request = found
            elif isinstance(found, h11.Data):
                body += bytes(found.data)
            else:
                return None
    except h11.RemoteProtocolError:
        return None
    assert request is not None
    return Reading(
        request.method.decode(),
        request.target.decode(),
        tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers),
        body,
        connection.trailing_data[0],
    )


def named(reading: Reading | None) -> Reading | None:
    """The same with an absolute target in one spelling: its scheme in small letters, and a path."""
    if reading is None or not reading.target.lower().startswith("http://"):
        return reading
    host, slash, path = reading.target[7:].partition("/")
    if "?" in host:
        host, _, query = reading.target[7:].partition("?")
        slash, path = "/", f"?{query}"
    target = f"http://{host}{slash or '/'}{path}"
    return Reading(reading.method, target, reading.fields, reading.body, reading.after)


TARGETS = {
    "origin": ("/", "/a?b=c", "/a#b", "*"),
    "absolute": ("http://h.example", "HTTP://h:1/a", "http://h?b/c", "h.example:443"),
}
HOSTS = st.sampled_from(
    (*[["Host: h.example"]] * 4, ["host:\t h.example "], [], ["Host: a", "Host: a"], ["Host: a, b"])
)
FRAMES = st.sampled_from(
    (
        [],
        ["Content-Length: 3"],
        ["content-length:03"],
        ["Transfer-Encoding: chunked"],
        ["Content-Length: 3", "Content-Length: 3"],
        ["Content-Length: 3, 3"],
        ["Content-Length: 3", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: identity"],
        ["Transfer-Encoding: gzip, chunked"],
    )
)
OTHERS = st.lists(
    st.builds(
        "X{}{}{}".format,
        st.sampled_from((": ", ":", ":\t ", " : ", "\t:")),
        st.text(st.sampled_from('ab,;\t "\\:'), max_size=4)
        | st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=2),
        st.sampled_from(("", " ", "\t")),
    ),
    max_size=1,
)
BODIES = st.one_of(
    st.just(b""),
    st.just(b"abcrest"),
    st.lists(st.binary(min_size=1, max_size=20).map(chunk), max_size=2).map(lambda parts: b"".join(parts) + LAST_CHUNK),
)
ODD_BYTES = st.sampled_from((b"", b"\n", b"\r", b"\r\n", b" ", b"\t", b"\0", b":", b";x", b"0", b"\xff", b"\n "))


@st.composite
def requests(draw: st.DrawFn, rules: RequestRules) -> bytes:
    """Bytes that are nearly a request: put together from good parts and odd ones, and perhaps damaged in a place."""
    method = draw(st.sampled_from(("GET", "POST", "CONNECT")))
    forms = TARGETS["origin" if "origin" in rules.targets else "absolute"]
    target = "h.example:443" if method == "CONNECT" else draw(st.sampled_from(forms))
    version = draw(st.sampled_from((*["HTTP/1.1"] * 4, "HTTP/1.0", "HTTP/1.2")))
    fields = [*draw(HOSTS), *draw(OTHERS), *draw(FRAMES)]
    raw = "\r\n".join([f"{method} {target} {version}", *fields, "", ""]).encode("latin-1") + draw(BODIES)
    if draw(st.sampled_from((False, False, True))):
        at, many = draw(st.integers(0, len(raw))), draw(st.integers(0, 1))
        raw = raw[:at] + draw(ODD_BYTES) + raw[at + many :]
    return raw


@pytest.mark.parametrize("rules", [BROKER, PROXY], ids=["broker", "proxy"])
@settings(max_examples=300)
@given(data=st.data())
def test_what_is_accepted_h11_reads_in_the_same_way(rules: RequestRules, data: st.DataObject) -> None:
    """Two readers that differ about where a request ends, or for whom it is, are how one gets past a check."""
    raw = data.draw(requests(rules))
    read = ours(raw, rules)
    event("accepted" if read else "refused")
    if read is not None:
        assert named(read) == named(theirs(raw))


@pytest.mark.parametrize("rules", [BROKER, PROXY], ids=["broker", "proxy"])
@given(
    path=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20),
    given_fields=st.dictionaries(
        st.from_regex(r"x-[!#$%&'*+.^_`|~0-9a-z-]{1,10}", fullmatch=True),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20).map(str.strip),
        max_size=5,
    ),
    body=st.binary(max_size=100),
    rest=st.binary(max_size=10),
)
def test_a_plain_request_is_accepted_and_read_as_it_was_written(
    rules: RequestRules, path: str, given_fields: dict[str, str], body: bytes, rest: bytes
) -> None:
    """A reader that refused everything would be strict too; and what follows the body is no part of it."""
    target = f"/{path}" if "origin" in rules.targets else f"http://h.example/{path}"
    fields = (("host", "h.example"), *given_fields.items(), ("content-length", str(len(body))))
    raw = head_of(f"POST {target} HTTP/1.1", fields) + body + rest
    assert ours(raw, rules) == Reading("POST", target, fields, body, rest) == theirs(raw)


@given(parts=st.lists(st.binary(min_size=1, max_size=50), max_size=5), rest=st.binary(max_size=10))
def test_a_body_in_chunks_is_read_as_it_was_written(parts: list[bytes], rest: bytes) -> None:
    """Its end is where the writer put it."""
    fields = (("host", "h.example"), ("transfer-encoding", "chunked"))
    raw = head_of("POST / HTTP/1.1", fields) + b"".join(map(chunk, parts)) + b"0\r\n\r\n" + rest
    assert ours(raw, BROKER) == Reading("POST", "/", fields, b"".join(parts), rest) == theirs(raw)


@pytest.mark.parametrize(
    "body",
    [
        b"2;x=y\r\n{}\r\n0\r\n\r\n",
        b"0\r\nT: x\r\n\r\n",
        b"0\r\n",
        b"000000002\r\n{}\r\n0\r\n\r\n",
        b"2\n{}\r\n0\r\n\r\n",
    ],
)
def test_a_chunk_says_its_size_and_nothing_else(body: bytes) -> None:
    """Extensions, trailers and sizes without an end are where readers differ."""
    raw = head_of("POST / HTTP/1.1", [("host", "h.example"), ("transfer-encoding", "chunked")])
    assert ours(raw + b"2\r\n{}\r\n0\r\n\r\n", BROKER) is not None
    assert ours(raw + body, BROKER) is None


def test_fields_between_neighbours_are_not_passed_on() -> None:
    """Neither those that HTTP names, nor those of a proxy, nor those that the sender itself names."""
    names = ("connection", "keep-alive", "x-near", "proxy-authorization", "proxy-odd", "host", "te", "accept", "cookie")
    fields = HeaderFields(tuple((name, "X-Near, close" if name == "connection" else "v") for name in names))
    assert fields.without(("cookie",)) == [("accept", "v")]


@pytest.mark.parametrize(
    ("first", "fields", "length"),
    [
        ("HTTP/1.1 200 OK", (("content-length", "3"),), 3),
        ("HTTP/1.0 200", (("x", "caf\xe9"),), -1),
        ("HTTP/1.1 204 No Content", (("content-length", "3"),), 0),
        ("HTTP/1.1 200 OK", (("transfer-encoding", "Chunked"),), None),
        (status_line(529), (("content-length", "3"), ("content-length", "3")), 3),
    ],
)
def test_the_answer_of_a_server_is_read_with_its_length(first: str, fields: Fields, length: int | None) -> None:
    """An answer ends by its length, by its last chunk, or with the connection."""
    read = parse_response(head_of(first, fields))
    assert (read.status, read.fields.pairs, read.length) == (int(first[9:12]), fields, length)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 600 Odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\nb\r\n\r\n",
    ],
)
def test_an_answer_that_is_odd_is_no_answer(raw: bytes) -> None:
    """A server is trusted with its body, not with ours."""
    with pytest.raises(PeerBroken):
        parse_response(raw)
