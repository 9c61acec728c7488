"""Counts what one answer uses, while it streams: the vendor's own numbers, and until they come what was said so far.

Anthropic tells the prompt's tokens at the start and the answer's at the end; OpenAI tells both at the end. In between
the answer is estimated from the length of its text, rather too low: a turn is cut when it is surely over its budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick.agents.port import Trouble
from bailiwick.agents.prices import Price, Tokens
from bailiwick.agents.streams import at, count_at, objects_at, text_at
from bailiwick.ids import Json

BYTES_PER_TOKEN = 4
_STEP = 50
"""Tokens of an estimate between two looks at the price."""
_DELTAS = ("text", "thinking", "partial_json")
_SAID = ("content", "reasoning_content", "reasoning", "refusal")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


@dataclass(slots=True)
class Meter:
    """One answer. `usd` is None while nothing can be said about its price."""

    price: Price
    model: str = ""
    told: Tokens | None = None
    complete: bool = False
    began: bool = False
    usd: float | None = None
    trouble: Trouble | None = None
    _said: int = 0
    _priced: int = 0
    _usage: dict[str, Json] = field(default_factory=dict)

    def see(self, event: dict[str, Json]) -> None:
        """Take one event of a stream."""
        self.began = True
        kind = text_at(event, "type")
        if kind in ("message_start", "message_delta"):
            self._see_anthropic(event, kind)
        elif kind == "content_block_delta":
            self._hear(*(text_at(event, "delta", name) for name in _DELTAS))
        elif kind in _ENDS:
            self.see_whole(at(event, "response"))
        elif kind.startswith("response."):
            self.model = text_at(event, "response", "model") or self.model
            self._hear(text_at(event, "delta"))
        elif kind == "error" or event.get("error"):
            self._fail(at(event, "error") or event)
        elif not kind:
            self._see_chat(event)

    def see_whole(self, answer: Json) -> None:
        """Take an answer that came in one piece."""
        self.began = True
        self.model = text_at(answer, "model") or self.model
        if isinstance(at(answer, "error"), dict):
            self._fail(at(answer, "error"))
        usage = at(answer, "usage")
        if isinstance(usage, dict):
            self._usage = usage
            self._take(complete=True)

    def _see_anthropic(self, event: dict[str, Json], kind: str) -> None:
        self.model = text_at(event, "message", "model") or self.model
        usage = at(event, "message", "usage") if kind == "message_start" else at(event, "usage")
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}
            self._take(complete=kind == "message_delta")

    def _see_chat(self, event: dict[str, Json]) -> None:
        self.model = text_at(event, "model") or self.model
        for choice in objects_at(event, "choices"):
            self._hear(*(text_at(choice, "delta", name) for name in _SAID))
            for call in objects_at(choice, "delta", "tool_calls"):
                self._hear(text_at(call, "function", "arguments"))
        if isinstance(event.get("usage"), dict):
            self._usage = event["usage"]
            self._take(complete=True)

    def _hear(self, *texts: str) -> None:
        self._said += sum(len(text.encode("utf-8", "replace")) for text in texts)
        if self.estimate - self._priced >= _STEP:
            self._settle()

    def _take(self, *, complete: bool) -> None:
        self.told = read_usage(self._usage)
        self.complete = complete
        self._settle()

    def _fail(self, error: Json) -> None:
        words = text_at(error, "message") or "the model reported an error within its answer"
        kind = text_at(error, "code") or text_at(error, "type")
        self.trouble = Trouble(words[:500], type=kind, final=False)

    @property
    def estimate(self) -> int:
        """Tokens of the answer so far, by its length."""
        return self._said // BYTES_PER_TOKEN

    @property
    def tokens(self) -> Tokens | None:
        """What is known to be used so far; None where not even the prompt is known."""
        if self.told is None or self.complete:
            return self.told
        return self.told.at_least(self.estimate)

    def _settle(self) -> None:
        """Price what is known; where the prompt is not, the answer alone, while it goes on."""
        self._priced = self.estimate
        tokens = self.tokens or Tokens(output=self.estimate)
        self.usd = self.price(self.model, tokens) if self.model else None


def read_usage(usage: dict[str, Json]) -> Tokens | None:
    """The tokens of a usage object of Anthropic's, of OpenAI's Responses or of chat completions."""
    if "prompt_tokens" in usage:
        taken, given = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
        cached = count_at(usage, "prompt_tokens_details", "cached_tokens") or 0
        written = 0
    else:
        taken, given = count_at(usage, "input_tokens"), count_at(usage, "output_tokens")
        cached = count_at(usage, "input_tokens_details", "cached_tokens") or 0
        read, written = (count_at(usage, f"cache_{name}_input_tokens") or 0 for name in ("read", "creation"))
        taken = None if taken is None else taken + read + written
        cached += read
    if taken is None or given is None:
        return None
    hour = count_at(usage, "cache_creation", "ephemeral_1h_input_tokens") or 0
    return Tokens(taken, given, min(cached, taken), written, min(hour, written))
