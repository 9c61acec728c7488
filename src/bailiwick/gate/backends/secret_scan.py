"""The check that no credential is added."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from bailiwick.gate.diffs.lines import added_lines
from bailiwick.gate.globs import first_match
from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.reading import read_versions
from bailiwick.gate.testfiles import is_test_file

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec


LONGEST_LINE = 20_000
MOST_FINDINGS = 50
_EDGE = r"(?<![A-Za-z0-9_])"
_PATTERNS = {
    "a private key": r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    "an AWS access key": _EDGE + r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])",
    "an AWS secret key": r"(?i:aws.{0,20}secret.{0,20}?)[\"'\s:=]+(?P<s>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    "a GitHub token": _EDGE + r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})",
    "a GitLab token": _EDGE + r"gl(?:pat|ptt|dt|rt|soat|cbt|ft)-[A-Za-z0-9_-]{20,}",
    "a Slack token": _EDGE + r"(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{16,}",
    "a Slack webhook": r"hooks\.slack\.com/(?:services|workflows)/(?P<s>[A-Za-z0-9/]{24,})",
    "a Stripe key": _EDGE + r"[sr]k_live_[A-Za-z0-9]{16,}",
    "a Google API key": _EDGE + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    "a Google OAuth secret": _EDGE + r"GOCSPX-[A-Za-z0-9_-]{20,}",
    "an Anthropic key": _EDGE + r"sk-ant-[A-Za-z0-9_-]{20,}",
    "an OpenAI key": _EDGE + r"sk-(?!ant-)(?:[a-z]{2,10}-)?(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{32,}",
    "a Hugging Face token": _EDGE + r"hf_[A-Za-z0-9]{30,}",
    "an npm token": _EDGE + r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])",
    "a PyPI token": _EDGE + r"pypi-[A-Za-z0-9_-]{50,}",
    "a SendGrid key": _EDGE + r"SG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{30,}",
    "a DigitalOcean token": _EDGE + r"do[opr]_v1_[a-f0-9]{64}",
    "a signed web token": _EDGE + r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}",
}
"""What the secrets of providers look like; the group `s` is the secret, the whole match where there is none."""
_PROVIDERS = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}
_LOGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s:/@'\"]{1,64}:(?P<s>[^\s:/@'\"]{8,200})@(?P<host>[^\s:/'\"?#]+)")
_ASSIGNED = re.compile(
    r"(?i:secret|token|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|auth[_-]?key|credential|private[_-]?key)"
    r"[A-Za-z0-9_\]\"'-]{0,40}\s{0,4}(?::=|=>|[:=])\s{0,4}[rbuf]{0,2}[\"'`](?P<s>[^\"'`\s]{16,500})[\"'`]"
)
_MADE_UP = re.compile(
    r"(?i)example|sample|dummy|fake|placeholder|change.?me|replace|your[_-]|my[_-]|test|mock|redacted|invalid|xxx|\*\*\*"
    r"|1234567|abcdefg|000000|deadbeef|not[_-]a|<|\$\{|\{\{|%\("
)
_NEAR = ("localhost", "127.0.0.1", "[::1]", "db", "postgres", "redis", "mysql", "example.com", "example.org")
_WORDY = re.compile(r"[A-Za-z]+(?:[._/:-][A-Za-z]+)*|/[^\s]*|https?://[^\s]*")
_LEAST_BITS = 3.6


def scan(path: str, lines: Iterable[tuple[int, str]], *, test: bool) -> Iterator[Finding]:
    """What looks like a secret in numbered lines of a file; a guess by a name blocks only outside tests."""
    for number, line in lines:
        text = line[:LONGEST_LINE]
        named = _provider(text)
        if named is not None:
            name, secret = named
            yield Finding("secret", f"{name} ({masked(secret)}) is added", path, number)
        elif (guess := _guess(text)) is not None:
            what = f"what looks like a secret ({masked(guess)}) is added"
            yield Finding("secret", what, path, number, blocks=not test)


def masked(secret: str) -> str:
    """A secret as it may be shown: at most its first four characters, which tell the kind, and its length."""
    head = secret[: min(4, len(secret) // 6)]
    return f"{head}…, {len(secret)} characters"


def entropy(text: str) -> float:
    """Bits per character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def _provider(text: str) -> tuple[str, str] | None:
    for name, pattern in _PROVIDERS.items():
        for found in pattern.finditer(text):
            secret = found["s"] if "s" in found.re.groupindex else found[0]
            if "PRIVATE KEY" in secret or (not _MADE_UP.search(secret) and len(set(secret)) > 8):
                return name, secret
    return None


def _guess(text: str) -> str | None:
    """The value of a secret-like name, or the password in an address, where it looks drawn by lot."""
    login = _LOGIN.search(text)
    if login is not None and login["host"] not in _NEAR and _is_random(login["s"], 2.8):
        return login["s"]
    for found in _ASSIGNED.finditer(text):
        if _is_random(found["s"], _LEAST_BITS):
            return found["s"]
    return None


def _is_random(value: str, least: float) -> bool:
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed and not _MADE_UP.search(value) and not _WORDY.fullmatch(value) and entropy(value) >= least


LARGEST = 8 << 20
_TEST_FOLDERS = ("tests/", "test/", "testdata/", "fixtures/", "examples/", "docs/")


class SecretScan:
    """Looks through the lines that a change adds."""

    async def run(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        ignored = tuple(spec.options.get("ignore", ()))
        looked = [c for c in context.changes if c.status != "D" and not first_match(ignored, c.path)]
        old, new = await read_versions(context.read, looked)
        findings: list[Finding] = []
        lines = 0
        for path, data in new.items():
            if data is not None and len(data) > LARGEST:
                what = f"{len(data)} bytes were not looked through: the file is too large"
                findings.append(Finding("not-scanned", what, path, blocks=False))
                continue
            added = tuple(added_lines(old.get(path) or b"", data or b""))
            lines += len(added)
            findings += scan(path, added, test=is_test(path))
        blocking = any(finding.blocks for finding in findings)
        return CheckResult(
            name=spec.name,
            kind=spec.kind,
            level="exit-code",
            outcome="failed" if blocking else "passed",
            counts=(("lines", lines), ("secrets", sum(f.code == "secret" for f in findings))),
            findings=tuple(findings[:MOST_FINDINGS]),
            hint="remove the secret, and revoke it: everyone who has seen the diff has it" if blocking else "",
        )


def is_test(path: str) -> bool:
    """Whether made-up values are to be expected in a file."""
    return is_test_file(path) or any(f"/{folder}" in f"/{path}" for folder in _TEST_FOLDERS)
