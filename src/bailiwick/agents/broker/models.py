"""Which models a turn may ask: the one it was given, the small ones that its program uses besides, and a listed few."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "sonnet": ("sonnet",),
    "opus": ("opus",),
    "haiku": ("haiku",),
    "opusplan": ("opus", "sonnet"),
    "best": ("opus",),
    "default": ("opus", "sonnet"),
}
"""What Claude Code's short names stand for: families whose newest member the program itself chooses."""
HELPERS: Mapping[str, tuple[str, ...]] = {"claude": ("haiku",)}
"""The families of small models that a program asks by itself: for titles, summaries and searches."""
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "claude": (
        "ANTHROPIC_SMALL_FAST_MODEL",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "CLAUDE_CODE_SUBAGENT_MODEL",
    ),
    "copilot": ("COPILOT_MODEL",),
}
"""Variables of the operator that name further models to a program."""
_DATED = re.compile(r"(?:[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest|\[1m\])+$")


@dataclass(slots=True, eq=False)
class ModelList:
    """The models of one turn. `names` may be short ones; `families` are words that a model's name holds.

    With `takes_first` the program chooses its model itself: the first that it asks for, and no helper, is the turn's.
    """

    names: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    takes_first: bool = False
    _first: str = ""

    def allows(self, model: str) -> bool:
        """Whether a model may be asked."""
        if self._is_listed(model):
            return True
        if self.takes_first and not self._first:
            self._first = model
        return bool(self._first) and plain(model) == plain(self._first)

    def _is_listed(self, model: str) -> bool:
        named = any(plain(name) == plain(model) for name in self.names)
        families = (*self.families, *(word for name in self.names for word in FAMILIES.get(plain(name), ())))
        return named or any(_is_of(model, family) for family in families)

    @property
    def words(self) -> str:
        """The list for people."""
        short = dict.fromkeys(
            f"claude-*{family}*"
            for family in (*(w for n in self.names for w in FAMILIES.get(plain(n), ())), *self.families)
        )
        named = [name for name in self.names if plain(name) not in FAMILIES]
        return ", ".join((*named, *([self._first] if self._first else ()), *short)) or "none"


def plain(model: str) -> str:
    """A model's name without the date of its release and in lower case: both ways it means the same model."""
    return _DATED.sub("", model.strip().lower())


def _is_of(model: str, family: str) -> bool:
    """Whether a model is of a family of Anthropic's, whatever its version."""
    return re.fullmatch(rf"claude-(?:[\d-]+-)?{re.escape(family)}(?:-[\d-]+)?", plain(model)) is not None


def models_for(backend: str, model: str | None, env: Mapping[str, str], also: Sequence[str] = ()) -> ModelList:
    """The models of a turn: `model` as the backend was given it, what the operator's variables name, and `also`."""
    given = (model or "").partition("@")[2] if backend == "codex" else (model or "")
    named = [env[name] for name in VARIABLES.get(backend, ()) if env.get(name)]
    return ModelList(tuple(filter(None, (given, *named, *also))), HELPERS.get(backend, ()), takes_first=not given)
