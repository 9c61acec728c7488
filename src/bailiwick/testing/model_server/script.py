"""What a scripted model does, request by request: steps, and scenarios that are lists of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Stop = Literal["end", "refusal", "length"]


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """What an answer says it used."""

    input: int = 1200
    output: int = 50
    cached: int = 1000
    written: int = 0


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with a text. `fills` makes the server claim that the prompt filled the whole context window."""

    text: str
    thinking: str = ""
    stop: Stop = "end"
    tokens: ScriptedUsage = field(default_factory=ScriptedUsage)
    fills: bool = False


@dataclass(frozen=True, slots=True)
class UseTool:
    """Call a tool of those the request offers; `raw` are arguments as they are, for example broken ones."""

    tool: Literal["shell", "write", "structured", "unknown"]
    command: str = ""
    path: str = ""
    content: str = ""
    raw: str = ""
    tokens: ScriptedUsage = field(default_factory=ScriptedUsage)


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an error: `code` names one of the catalogue, else the status speaks; `resets_in` is a cap's."""

    status: int
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    resets_in: int | None = None


@dataclass(frozen=True, slots=True)
class FailMidway:
    """Begin to answer, then report an error within the stream."""

    code: str
    text: str = "The first half of"


@dataclass(frozen=True, slots=True)
class Hang:
    """Say nothing more until the client leaves; with a text, after it."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection; with a text, after it."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """Answer with bytes that are no model's."""

    body: bytes
    media: str = "text/html"
    status: int = 200


@dataclass(frozen=True, slots=True)
class Flood:
    """Answer with `size` bytes of a body that is a single line."""

    size: int


@dataclass(frozen=True, slots=True)
class Drip:
    """Send a comment byte by byte, without end: always something, never an event."""

    every: float = 0.005


@dataclass(frozen=True, slots=True)
class Babble:
    """Say the same over and over, without end."""

    text: str = "and then "
    every: float = 0.005


@dataclass(frozen=True, slots=True)
class ByModel:
    """Do one thing for models whose name holds a word, another for the rest."""

    word: str
    then: Say | Fail
    otherwise: Say | Fail


Step = Say | UseTool | Fail | FailMidway | Hang | Drop | Raw | Flood | Drip | Babble | ByModel
Scenario = Sequence[Step]
"""The n-th request gets the n-th step; the last one repeats."""

ANSWER = '{"answer": "forty-two", "n": 42}'
_COMMAND = "echo from-the-script > scripted.txt && cat scripted.txt"
_DEAR = ScriptedUsage(input=500_000, output=20_000, cached=0)
_NEARLY_FULL = ScriptedUsage(input=195_000, cached=0)

SCENARIOS: Mapping[str, Scenario] = {
    "plain": (Say("Hello from the script."),),
    "tool": (UseTool("shell", _COMMAND), Say("The command ran.")),
    "tool-write": (UseTool("write", path="written.txt", content="by the script\n"), Say("The file is written.")),
    "tool-loop": (UseTool("shell", "echo again"),),
    "tool-hang": (UseTool("shell", "tail -f /dev/null"), Say("It ended.")),
    "tool-unknown": (UseTool("unknown"), Say("There was no such tool.")),
    "tool-broken": (UseTool("shell", raw='{"command": 5'), Say("The arguments were broken.")),
    "429": (Fail(429, headers={"retry-after": "2"}),),
    "429-once": (Fail(429, headers={"retry-after": "2"}), Say("Hello after a 429.")),
    "429-long": (Fail(429, headers={"retry-after": "3600"}),),
    "429-bare": (Fail(429),),
    "500": (Fail(500),),
    "500-once": (Fail(500), Say("Hello after a 500.")),
    "503": (Fail(503),),
    "529": (Fail(529),),
    "529-thrice": (Fail(529), Fail(529), Fail(529), Say("Hello after three 529.")),
    "502-html": (Raw(b"<html><title>502 Bad Gateway</title></html>", status=502),),
    "401": (Fail(401),),
    "402": (Fail(402),),
    "403": (Fail(403),),
    "404": (Fail(404),),
    "413": (Fail(413),),
    "redirect": (Raw(b"", status=307),),
    "overflow": (Fail(400, "overflow"),),
    "overflow-once": (Fail(400, "overflow"), Say("Hello after the overflow.")),
    "overflow-midway": (FailMidway("overflow"),),
    "overflow-silent": (Say("I saw only the end of it.", fills=True),),
    "overloaded-midway": (FailMidway("overloaded"),),
    "overloaded-midway-once": (FailMidway("overloaded"), Say("Hello after the overload.")),
    "credit": (Fail(400, "credit"),),
    "quota": (Fail(429, "quota"),),
    "spend-cap": (Fail(400, "spend-cap"),),
    "usage-limit": (Fail(429, "usage-limit", resets_in=3 * 3600),),
    "usage-limit-week": (Fail(429, "usage-limit", resets_in=4 * 86400),),
    "empty": (Say(""),),
    "empty-body": (Raw(b"", "text/event-stream"),),
    "thinking-only": (Say("", thinking="Let me see."),),
    "think-tags": (Say(f'<think>\nIs it {{"n": 1}}?\n</think>\n\n{ANSWER}'),),
    "refusal": (Say("", stop="refusal"),),
    "refusal-said": (Say("I can't help with that.", stop="refusal"),),
    "length": (Say("This answer is cut o", stop="length"),),
    "hang": (Hang(),),
    "hang-once": (Hang(), Say("Hello after a hang.")),
    "hang-midway": (Hang("The first half of"),),
    "drop": (Drop(),),
    "drop-midway": (Drop("The first half of"),),
    "drop-midway-once": (Drop("The first half of"), Say("Hello after a drop.")),
    "garbage": (Raw(b"<html>Please log in to the hotel's network</html>"),),
    "flood": (Flood(100 << 20),),
    "drip": (Drip(),),
    "babble": (Babble(),),
    "json": (Say(ANSWER),),
    "json-fenced": (Say(f"Here it is:\n```json\n{ANSWER}\n```"),),
    "json-broken": (Say("this is no JSON"),),
    "json-wrong": (Say('{"answer": 7}'),),
    "structured": (UseTool("structured", raw=ANSWER), Say("Done.")),
    "structured-wrong": (UseTool("structured", raw='{"answer": 7}'),),
    "structured-never": (Say("I would rather talk."),),
    "nearly-full": (Say("Hello with a full window.", tokens=_NEARLY_FULL), Say("A summary of what was said.")),
    "dear": (UseTool("shell", "echo again", tokens=_DEAR),),
    "fallback": (ByModel("opus", Fail(529), Say("Hello from the other model.")),),
}
