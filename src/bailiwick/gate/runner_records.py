"""What a run of another language's tests told over its pipe: sealed lines, read and checked. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
import re

from bailiwick.gate.outcomes import PipeRecords

LONGEST_LINE = 1 << 16
MAIN = "m"
"""The writer that holds the run's own key: the process of the runner."""
_LINE = re.compile(
    r"(?P<seal>[0-9a-f]{64}) (?P<body>(?P<who>\w+) (?P<number>\d+) (?P<last>[01]) (?P<part>.*))", re.DOTALL
)


class RecordLines(PipeRecords):
    """Records of which each is a line."""

    def _take(self) -> bool:
        end = self._rest.find(b"\n")
        if end < 0:
            if len(self._rest) > LONGEST_LINE:
                self._fail("the run sends more data than any real test run")
            return False
        line = self._rest[:end].decode("utf-8", "replace")
        del self._rest[: end + 1]
        self._take_line(line)
        return self.fault is None

    def _take_line(self, line: str) -> None:
        raise NotImplementedError


class SealedLines(RecordLines):
    """Records of a runner's process and of its children, each sealed by the key of its writer and numbered."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._keys = {MAIN: key}
        self._next: dict[str, int] = {}
        self._parts: dict[str, str] = {}

    def _take_line(self, line: str) -> None:
        found = _LINE.fullmatch(line)
        key = self._keys.get(found["who"]) if found else None
        if found is None or key is None:
            self._fail("a line is not in the form of this run")
            return
        who, number = found["who"], self._next.get(found["who"], 0)
        wanted = hmac.new(key, found["body"].encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(wanted, found["seal"]) or int(found["number"]) != number:
            self._fail(f"record {number} of {who} does not have the seal of this run")
            return
        self._next[who] = number + 1
        text = self._parts.pop(who, "") + found["part"]
        if found["last"] == "1":
            self._add(who, text)
        else:
            self._parts[who] = text

    def _add(self, who: str, text: str) -> None:
        try:
            record = json.loads(text)
            record = json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            self._fail(f"a record of {who} can't be read")
            return
        if record.get("t") == "child" and who == MAIN:
            self._keys[str(record["id"])] = bytes.fromhex(str(record["key"]))
        self.all.append({**record, "who": who})


class TokenLines(RecordLines):
    """Lines of a script of ours, each beginning with the token of this run, then a word, then the rest."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def _take_line(self, line: str) -> None:
        token, _, rest = line.partition(" ")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            self._fail("a line does not have the token of this run")
            return
        word, _, said = rest.partition(" ")
        self.all.append({"t": word, "said": said})
