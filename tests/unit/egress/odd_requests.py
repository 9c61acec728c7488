"""Requests that two programs could read differently: the broker and the proxy have to refuse each of them.

`{post}` stands for the method and target of a request that would be served, `{fields}` for the fields it needs.
"""

from __future__ import annotations

_HEAD = "{post} HTTP/1.1\r\n{fields}"
ODD: tuple[tuple[str, int], ...] = (
    ("nonsense\r\n\r\n", 400),
    ("{post}\r\n{fields}\r\n", 400),
    ("{post}  HTTP/1.1\r\n{fields}\r\n", 400),
    ("{post}\tHTTP/1.1\r\n{fields}\r\n", 400),
    ("{post} HTTP/1.1 \r\n{fields}\r\n", 400),
    ("{post} http/1.1\r\n{fields}\r\n", 400),
    ("{post}\xff HTTP/1.1\r\n{fields}\r\n", 400),
    ("{post}\x1b[2J HTTP/1.1\r\n{fields}\r\n", 400),
    ("\r\n{post} HTTP/1.1\r\n{fields}\r\n", 400),
    ("{post} HTTP/1.1\n{fields}\r\n", 400),
    ("{post} HTTP/1.2\r\n{fields}\r\n", 505),
    ("{post} HTTP/2\r\n{fields}\r\n", 505),
    ("{post} HTTP/2.0\r\n{fields}\r\n", 505),
    ("{post} HTTP/1.1\r\n\r\n", 400),
    ("{post} HTTP/1.1\r\n folded: x\r\n{fields}\r\n", 400),
    (_HEAD + "Host: other.example\r\n\r\n", 400),
    (_HEAD + "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400),
    (_HEAD + "Proxy-Authorization: Basic YQ==\r\nProxy-Authorization: Basic Yg==\r\n\r\n", 400),
    (_HEAD + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}", 400),
    (_HEAD + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{{}}", 400),
    (_HEAD + "Content-Length: 2, 2\r\n\r\n{{}}", 400),
    (_HEAD + "Content-Length: +2\r\n\r\n{{}}", 400),
    (_HEAD + "Content-Length: -1\r\n\r\n", 400),
    (_HEAD + "Content-Length: 0x2\r\n\r\n{{}}", 400),
    (_HEAD + "Content-Length:\r\n\r\n", 400),
    (_HEAD + "Content-Length: 9999999999999999\r\n\r\n", 400),
    (_HEAD + "Content-Length: 999999999999\r\n\r\n", 413),
    (_HEAD + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (_HEAD + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (_HEAD + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    (_HEAD + "X: a\r\n b\r\n\r\n", 400),
    (_HEAD + "X: a\x00b\r\n\r\n", 400),
    (_HEAD + "X: a\x07b\r\n\r\n", 400),
    (_HEAD + "X: a\x7fb\r\n\r\n", 400),
    (_HEAD + "X: a\xe9b\r\n\r\n", 400),
    (_HEAD + "X: a\nY: b\r\n\r\n", 400),
    (_HEAD + "X: a\rY: b\r\n\r\n", 400),
    (_HEAD + "nocolon\r\n\r\n", 400),
    (_HEAD + ": x\r\n\r\n", 400),
    (_HEAD + "a b: x\r\n\r\n", 400),
    (_HEAD + "x: y\r\n" * 101 + "\r\n", 431),
    (_HEAD + "x: " + "y" * 40_000 + "\r\n\r\n", 431),
)
