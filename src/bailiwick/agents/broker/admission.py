"""Decides about one request before anything is sent: its model, its price, and whether its worst case can be paid."""

from __future__ import annotations

import asyncio

from bailiwick.agents.broker import refusals
from bailiwick.agents.broker.asked import ModelRequest, largest, read_asked, worst
from bailiwick.agents.broker.grants import ANSWERS, AdmittedRequest, Grant
from bailiwick.agents.broker.meter import UsageMeter
from bailiwick.agents.broker.purse import BudgetHeld, Hold
from bailiwick.agents.port import Trouble
from bailiwick.agents.prices import TokenCount, context_window
from bailiwick.egress.http1 import RequestRefused
from bailiwick.engine.failures import FailureKind

QUICK = 256 << 10
"""Bytes of a request that are read at once; a larger one is read in a thread."""
LONG_CONTEXT, LONG_WINDOW = "context-1m", 1_000_000
"""What a client says who may send more than the model's usual window, and how much that is."""


async def read(path: str, body: bytes, grant: Grant) -> ModelRequest:
    """What is asked, if the turn may ask it; raises `RequestRefused`."""
    asked = read_asked(path, body) if len(body) < QUICK else await asyncio.to_thread(read_asked, path, body)
    models = grant.rules.models
    if models is not None and not models.allows(asked.model):
        words = (
            f"this turn may not ask the model '{asked.model}', only {models.words}; the operator can add one: "
            "bailiwick config set agents.models.BACKEND.also"
        )
        raise _not_given(grant, words)
    if path in ANSWERS and not grant.rules.unpriced and grant.price(asked.model, TokenCount(1, 1)) is None:
        words = f"the price of the model '{asked.model}' is unknown; to ask it all the same, uncounted: "
        raise _not_given(grant, words + "bailiwick config set budget.unknown_cost allow")
    return asked


def _not_given(grant: Grant, words: str) -> RequestRefused:
    """A model that the turn was not given: only the operator can change that, so nothing is tried again."""
    grant.note(Trouble(words[:500], type=str(FailureKind.BILLING), final=False))
    return RequestRefused(403, "permission_error", words)


async def admit(asked: ModelRequest, grant: Grant, beta: str, seconds: float) -> AdmittedRequest:
    """Set aside what a request can cost; it waits while others hold that. `RequestRefused` where it can't be paid."""
    output = asked.output or grant.rules.answer_tokens
    window = context_window(asked.model)
    if window is not None and LONG_CONTEXT in beta:
        window = max(window, LONG_WINDOW)
    prompt = asked.prompt(grant.known, window)
    if prompt is None and grant.limit_usd is not None:
        raise RequestRefused(400, "invalid_request_error", f"a document can't be counted for the model '{asked.model}'")
    prompt = prompt if prompt is not None else asked.text

    def cost(tokens: int) -> float:
        return worst(grant.price, asked, prompt, tokens) or 0.0

    hold = await _held(asked, grant, (cost(output), cost(min(output, asked.least))), seconds)
    allowed = largest(min(output, asked.least), output, lambda tokens: cost(tokens) <= hold.amount)
    sent = asked if cost(output) == 0 or grant.limit_usd is None else asked.limited(allowed)
    if grant.upstream.is_vendor:
        sent = sent.telling()
    held = asked.held
    most = TokenCount(
        prompt,
        output=allowed * asked.choices,
        cached=0,
        written=prompt if held.writes_cache else 0,
        written_hour=prompt if held.writes_hour else 0,
    )
    return AdmittedRequest(sent, UsageMeter(grant.price, asked.model, most), hold)


async def _held(asked: ModelRequest, grant: Grant, costs: tuple[float, float], seconds: float) -> Hold:
    full, least = costs
    try:
        hold = await grant.purse.take(full, least, seconds)
    except BudgetHeld:
        words = "other requests of this turn hold what is left of its budget; ask again when they are answered"
        raise RequestRefused(429, "rate_limit_error", words) from None
    if hold is None:
        grant.stop()
        raise RequestRefused(400, refusals.BUDGET, refusals.budget_words(grant.limit_usd, least, grant.purse.left))
    return hold
