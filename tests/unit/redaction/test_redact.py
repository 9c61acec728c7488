"""The redactor: no form of a known secret gets through; everything else does, unchanged."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.ids import Json
from bailiwick.redaction.redact import COVER, Redactor, _covered, forms_of

LETTERS = 'abcdefXYZ0189+/_-%"\\ \nä€😀'
SECRETS = st.text(LETTERS, min_size=6, max_size=24).filter(lambda secret: len(secret.strip()) >= 6)
AROUND = st.binary(max_size=12)
TEXTS = st.text(LETTERS, max_size=40)


def based(before: bytes, secret: bytes, after: bytes) -> bytes:
    return base64.b64encode(before + secret + after)


def based_for_urls(before: bytes, secret: bytes, after: bytes) -> bytes:
    return base64.urlsafe_b64encode(before + secret + after).rstrip(b"=")


def printed(secret: str, before: bytes, after: bytes) -> dict[str, bytes]:
    """A secret as programs print it, with what stands around it."""
    raw = secret.encode()
    return {
        "plain": before + raw + after,
        "base64": based(before, raw, after),
        "base64 for URLs": based_for_urls(before, raw, after),
        "hex": (before + raw + after).hex().encode(),
        "HEX": (before + raw + after).hex().upper().encode(),
        "URL": quote(raw, safe="").encode(),
        "form": quote_plus(raw).encode(),
        "JSON": json.dumps({"k": secret}).encode(),
        "JSON in UTF-8": json.dumps({"k": secret}, ensure_ascii=False).encode(),
        "JSON in JSON": json.dumps(json.dumps([secret])).encode(),
    }


def covered(redactor: Redactor, data: bytes) -> bytes:
    """Bytes that need be no text, with what the redactor finds in them covered."""
    return _covered(data, redactor.spans(data))


@given(secret=SECRETS, before=AROUND, after=AROUND)
def test_no_form_of_a_secret_survives(secret: str, before: bytes, after: bytes) -> None:
    """Whatever a program does to print it."""
    secret = secret.strip()
    redactor = Redactor([secret])
    forms = forms_of([secret])
    for name, data in printed(secret, before, after).items():
        out = covered(redactor, data)
        assert COVER.encode() in out, name
        rest = out.replace(COVER.encode(), b"\n\xff\n")
        assert [form for form in forms if form in rest] == [], name


@given(secret=SECRETS, before=AROUND, after=AROUND)
def test_base64_leaves_no_character_that_the_secret_alone_decides(secret: str, before: bytes, after: bytes) -> None:
    """At each of the three places where it may begin; what is left mixes it with its neighbours, six bits at most."""
    raw = secret.strip().encode()
    whole = based(before, raw, after)
    start, end = len(before) * 8, (len(before) + len(raw)) * 8
    out = covered(Redactor([secret]), whole)
    left = len(out.replace(COVER.encode(), b"")) if COVER.encode() in out else None
    assert left is not None
    assert left <= len(whole) - (end // 6 - -(-start // 6))


@given(text=st.text(max_size=200), secrets=st.lists(st.text("qwertz", min_size=6, max_size=9), max_size=3))
def test_a_text_without_secrets_is_unchanged(text: str, secrets: list[str]) -> None:
    """Byte for byte, half characters included."""
    redactor = Redactor(secrets)
    data = text.encode("utf-8", "surrogatepass")
    if not any(form in data for form in forms_of(secrets)):
        assert redactor.text(text) == text
        assert redactor.spans(data) == []


JSONS: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 10**9) | st.text(LETTERS, max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(LETTERS, max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSONS, data=st.data(), indent=st.none() | st.just(1))
def test_what_was_json_stays_json_and_holds_no_secret(value: Json, data: st.DataObject, indent: int | None) -> None:
    """The secret is any part of the text: digits of a number, half an escape, a quote and what follows it."""
    text = json.dumps([value], indent=indent, ensure_ascii=data.draw(st.booleans()))
    start = data.draw(st.integers(0, max(0, len(text) - 6)))
    secret = text[start : start + data.draw(st.integers(6, 12))]
    redactor = Redactor([secret])
    for written in (text, f"{text}\n"):
        out = redactor.text(written)
        json.loads(out)
        assert redactor.spans(out.replace(COVER, "\0").encode()) == []


@given(rows=st.lists(st.dictionaries(st.text("ab", max_size=2), st.integers(0, 10**9)), min_size=2, max_size=4))
def test_lines_of_json_stay_lines_of_json(rows: list[Json]) -> None:
    """Agents speak one document per line; a password of digits may stand in a number of one of them."""
    rows.append({"n": 123456})
    out = Redactor(["123456"]).text("".join(json.dumps(row) + "\n" for row in rows))
    assert json.loads(out.splitlines()[-1]) == {"n": COVER}
    assert [json.loads(line) for line in out.splitlines()][:-1] == rows[:-1] or "123456" in json.dumps(rows[:-1])


def test_a_json_value_is_covered_in_texts_names_and_numbers() -> None:
    """Values are covered before they are written, so that no escape can hide a secret."""
    value = {"a": ['say "hunter2"', 1234567, True, None, 1.5], 'x"hunter2"': ("123456",)}
    covered = {"a": [f"say {COVER}", COVER, True, None, 1.5], f"x{COVER}": [COVER]}
    assert Redactor(['"hunter2"', "123456"]).json(value) == covered


def test_a_secret_of_several_lines_is_covered_as_a_whole_and_line_by_line() -> None:
    """A key file is printed with an indent, with other line ends, or only in part."""
    body = ["MIIEpAIBAAKCAQEA7bq2", "kZk3vN0mYQ9r1tXw5oPz"]
    key = "\n".join(["-----BEGIN KEY-----", *body, "-----END KEY-----", ""])
    redactor = Redactor([key])
    for shown in (key, key.replace("\n", "\r\n"), json.dumps(key), f"  | {body[0]}\n  | {body[1]}\n", body[1]):
        out = redactor.text(shown)
        assert COVER in out
        assert not any(line in out for line in body)
    assert redactor.text("-----BEGIN KEY-----") == "-----BEGIN KEY-----"
    assert redactor.text(key) == f"{COVER}\n"


@pytest.mark.parametrize("secret", ["", "  ", "short", " 12345 \n", "redacted"])
def test_what_is_too_short_or_our_own_word_is_not_looked_for(secret: str) -> None:
    """It would be found everywhere; and covering the cover would never end."""
    redactor = Redactor([secret])
    text = f"a {secret} b short 12345 {COVER}"
    assert not redactor
    assert redactor.text(text) == text


def test_overlapping_secrets_are_covered_as_one() -> None:
    """The rest of a longer secret must not stay behind a shorter one."""
    assert Redactor(["abcdef", "defghi"]).text("<abcdefghi>") == f"<{COVER}>"
    assert Redactor(["abcdef", "abcdefghijkl"]).text("<abcdefghijkl>") == f"<{COVER}>"
    assert Redactor(["abcdef"]).text("abcdefabcdef abcdef") == f"{COVER} {COVER}"


def test_a_redactor_without_secrets_passes_everything_on() -> None:
    """Nothing known, nothing done."""
    assert Redactor([]).text("abc") == "abc"
    assert Redactor([]).json({"a": 123456}) == {"a": 123456}
