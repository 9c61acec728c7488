"""Secrets in added lines. Every secret here is put together at run time, so that this file holds none."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest

from bailiwick.gate.backends.secret_scan import entropy, is_test, masked, scan
from bailiwick.gate.diffs.lines import added_lines
from bailiwick.gate.model import Finding
from bailiwick.ids import canonical
from tests.unit.gate.gate_stage import make_stage, spec_of

_DICE = random.Random(7)
_ALNUM = string.ascii_letters + string.digits


def _lot(length: int, signs: str = _ALNUM) -> str:
    return "".join(_DICE.choice(signs) for _ in range(length))


SECRETS = {
    "AWS access": "AK" + "IA" + _lot(16, string.ascii_uppercase + "234567"),
    "AWS secret": "aws_secret_access_" + 'key = "' + _lot(40) + '"',
    "GitHub": "gh" + "p_" + _lot(36),
    "GitHub fine": "github_" + "pat_" + _lot(70),
    "GitLab": "gl" + "pat-" + _lot(20),
    "Slack token": "xo" + "xb-" + _lot(24),
    "Slack webhook": "https://hooks.slack." + "com/services/" + _lot(30),
    "Stripe": "sk_" + "live_" + _lot(24),
    "Google API": "AI" + "za" + _lot(35),
    "Anthropic": "sk-" + "ant-api03-" + _lot(40),
    "OpenAI": "sk-" + "proj-" + _lot(44) + "7",
    "private": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "web token": "ey" + "J" + _lot(20) + ".ey" + "J" + _lot(30) + "." + _lot(30),
    "npm": "np" + "m_" + _lot(36),
    "assigned": "API_TOK" + 'EN = "' + _lot(32) + '"',
    "login": "postgres://admin:" + _lot(16) + "@db.internal.example.net/x",
}  # fmt: skip


def _found(line: str, path: str = "src/app.py") -> list[Finding]:
    return list(scan(path, [(3, line)], test=is_test(path)))


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_of_a_known_shape_blocks_and_is_never_repeated(kind: str) -> None:
    """The report is kept and shown: it must not be the next place where the secret leaks."""
    secret = SECRETS[kind]
    found = _found(f"x = {secret}")
    assert [(f.path, f.line, f.blocks) for f in found] == [("src/app.py", 3, True)]
    for start in range(len(secret) - 12):
        part = secret[start : start + 12]
        assert part not in found[0].what or "PRIVATE" in secret


@pytest.mark.parametrize(
    "line",
    [
        'token = "your-token-goes-here-please"',
        'password = os.environ["APP_PASSWORD_VARIABLE"]',
        'API_KEY = "${API_KEY_FROM_THE_VAULT_123}"',
        'secret = "EXAMPLE0123456789abcdef012345"',
        "AK" + "IA" + "IOSFODNN7EXAMPLE",
        "gh" + "p_" + "x" * 36,
        "DATABASE_URL = postgres://postgres:postgres@localhost:5432/app",
        'integrity = "sha512-' + _lot(60) + '"',
        "token_url = 'https://auth.example.org/oauth2/v1/token/refresh'",
        'api_key_header: "X-Custom-Authorization-Header"',
        "passwords are hashed with scrypt",
        'TOKEN_PATH = "/var/run/secrets/kubernetes.io/token"',
        "sk-this-is-a-css-class-name-with-many-parts-in-it",
    ],
)
def test_what_is_made_up_or_no_secret_passes(line: str) -> None:
    """A scanner that cries wolf is switched off."""
    assert _found(line) == []


def test_a_guess_blocks_only_outside_of_tests() -> None:
    """Tests are full of made-up tokens; a provider's own pattern blocks there too."""
    guess, real = SECRETS["assigned"], SECRETS["GitHub"]
    assert [f.blocks for f in _found(guess, "tests/test_a.py")] == [False]
    assert [f.blocks for f in _found(real, "tests/test_a.py")] == [True]
    assert [f.blocks for f in _found(guess, "pkg/fixtures/a.json")] == [False]


def test_only_added_lines_are_looked_at() -> None:
    """What the base has already is not this change's doing; a second copy of it is."""
    old = b"a\nsecret\nb\n"
    assert list(added_lines(old, b"b\nsecret\na\nnew\nsecret\n")) == [(4, "new"), (5, "secret")]


def test_what_is_shown_of_a_secret_is_little() -> None:
    """Four characters tell the kind; of a short one less is shown."""
    assert masked("abcdefghijklmnopqrstuvwxyz") == "abcd…, 26 characters"
    assert masked("abcdefgh") == "a…, 8 characters"
    assert entropy("aaaa") == 0.0


def test_a_very_long_line_takes_no_time() -> None:
    """A minified file has lines of megabytes; a pattern that backtracks would hang the gate."""
    line = 'token="' + "a1" * 500_000
    assert _found(line) == []
    assert _found("https://u:" + "p" * 1_000_000) == []


def test_a_secret_in_a_change_makes_the_gate_red_and_not_its_report(tmp_path: Path) -> None:
    """From the tree to the report: found where it is, and nowhere written down; the base's own is not this change's."""
    stage = make_stage(tmp_path)
    stage.scene.commit({"old.py": f"a = '{SECRETS['GitLab']}'\n"})
    spec = spec_of("checks: [{name: secrets, kind: secret-scan, ignore: [vendored/**]}]")
    edit: dict[str, str | None] = {
        "app.py": f"x = 1\ny = '{SECRETS['GitHub']}'\n",
        "vendored/x.py": SECRETS["Stripe"],
        "old.py": f"b = 2\na = '{SECRETS['GitLab']}'\n",
    }
    report = stage.check(edit, spec)
    assert report.verdict == "red"
    assert [(f.path, f.line) for f in report.checks[0].findings] == [("app.py", 2)]
    assert SECRETS["GitHub"] not in canonical(report.to_json())
    assert stage.check({"old.py": None, "app.py": "x = 1\n"}, spec).verdict == "green"
