"""Counts what one answer uses, while it streams: the vendor's own numbers, and until they come what was said so far.

Anthropic tells the prompt's tokens at the start and the answer's at the end; OpenAI tells both at the end. In between
the answer is estimated from the length of its text: rather too low while it streams, so that it is cut only when it is
surely over what was set aside for it, and rather too high when it is charged without the vendor's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick.agents.port import Trouble
from bailiwick.agents.prices import Price, TokenCount
from bailiwick.agents.streams import at, count_at, objects_at, text_at
from bailiwick.ids import Json

BYTES_PER_TOKEN = 4
CHARGED_BYTES = 2
"""Bytes that are charged as a token where the vendor counted none: words and code have more of them."""
_ONE = TokenCount(1, 1)
_DELTAS = ("text", "thinking", "partial_json")
_SAID = ("content", "reasoning_content", "reasoning", "refusal")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


@dataclass(slots=True)
class UsageMeter:
    """One answer.

    `model` is the one that was asked, and then the one that answers; `most` are the tokens that were set aside.
    """

    price: Price
    model: str = ""
    most: TokenCount = field(default_factory=TokenCount)
    told: TokenCount | None = None
    complete: bool = False
    trouble: Trouble | None = None
    _said: int = 0
    _unread: int = 0
    _usage: dict[str, Json] = field(default_factory=dict)

    def see(self, event: dict[str, Json]) -> None:
        """Take one event of a stream."""
        kind = text_at(event, "type")
        if kind in ("message_start", "message_delta"):
            self._see_anthropic(event, kind)
        elif kind == "content_block_delta":
            self._hear(*(text_at(event, "delta", name) for name in _DELTAS))
        elif kind in _ENDS:
            self.see_whole(at(event, "response"))
        elif kind.startswith("response."):
            self._name(text_at(event, "response", "model"))
            self._hear(text_at(event, "delta"))
        elif kind == "error" or event.get("error"):
            self._fail(at(event, "error") or event)
        elif not kind:
            self._see_chat(event)

    def pass_over(self, size: int) -> None:
        """Take bytes of an answer that can't be read: they count as said, up to what was set aside."""
        self._unread += size

    def see_whole(self, answer: Json) -> None:
        """Take an answer that came in one piece."""
        self._name(text_at(answer, "model"))
        if isinstance(at(answer, "error"), dict):
            self._fail(at(answer, "error"))
        usage = at(answer, "usage")
        if isinstance(usage, dict):
            self._usage = usage
            self._take(complete=True)

    def _see_anthropic(self, event: dict[str, Json], kind: str) -> None:
        self._name(text_at(event, "message", "model"))
        usage = at(event, "message", "usage") if kind == "message_start" else at(event, "usage")
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}
            self._take(complete=kind == "message_delta")

    def _see_chat(self, event: dict[str, Json]) -> None:
        self._name(text_at(event, "model"))
        for choice in objects_at(event, "choices"):
            self._hear(*(text_at(choice, "delta", name) for name in _SAID))
            for call in objects_at(choice, "delta", "tool_calls"):
                self._hear(text_at(call, "function", "arguments"))
        if isinstance(event.get("usage"), dict):
            self._usage = event["usage"]
            self._take(complete=True)

    def _name(self, model: str) -> None:
        """Who answers; an unknown name does not make the answer free."""
        if model and self.price(model, _ONE) is not None:
            self.model = model

    def _hear(self, *texts: str) -> None:
        self._said += sum(len(text.encode("utf-8", "replace")) for text in texts)

    def _take(self, *, complete: bool) -> None:
        self.told = read_usage(self._usage)
        self.complete = complete and self.told is not None

    def _fail(self, error: Json) -> None:
        words = text_at(error, "message") or "the model reported an error within its answer"
        kind = text_at(error, "code") or text_at(error, "type")
        self.trouble = Trouble(words[:500], type=kind, final=False)

    @property
    def estimate(self) -> int:
        """Tokens of the answer so far, by its length."""
        return (self._said + self._unread) // BYTES_PER_TOKEN

    @property
    def is_over(self) -> bool:
        """Whether it is surely longer than it was allowed to be; one that is complete is paid for anyway."""
        return not self.complete and self.estimate > self.most.output

    def charged(self, *, in_full: bool) -> TokenCount:
        """What is paid for: the vendor's numbers; else the prompt at its most and what was said, rather too high.

        `in_full` is for an answer that nobody saw to its end: the vendor may have written all that was allowed.
        """
        if self.told is not None and self.complete:
            return self.told
        said = -(-(self._said + self._unread) // CHARGED_BYTES)
        output = self.most.output if in_full else max(min(said, self.most.output), self._said // BYTES_PER_TOKEN)
        prompt = self.told or TokenCount(
            self.most.input, output=0, cached=0, written=self.most.written, written_hour=self.most.written_hour
        )
        return prompt.at_least(output)


def read_usage(usage: dict[str, Json]) -> TokenCount | None:
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
    if not taken or given is None:
        return None  # a prompt without tokens is a count that nobody made
    hour = count_at(usage, "cache_creation", "ephemeral_1h_input_tokens") or 0
    return TokenCount(taken, output=given, cached=min(cached, taken), written=written, written_hour=min(hour, written))
