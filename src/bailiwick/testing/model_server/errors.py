"""What the vendors' APIs say when they refuse, as far as agent CLIs look at it."""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.ids import Json
from bailiwick.testing.model_server.script import Fail

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_ANTHROPIC_TEXTS = {
    "401": "invalid x-api-key",
    "403": "Your API key does not have permission to use the specified resource.",
    "404": "model: {model}",
    "413": "Request exceeds the maximum size",
    "429": "This request would exceed your organization's rate limit of 50,000 input tokens per minute.",
    "500": "Internal server error",
    "529": "Overloaded",
    "overloaded": "Overloaded",
    "overflow": "prompt is too long: 210345 tokens > 200000 maximum",
    "credit": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.",
    "spend-cap": "You have reached your specified API usage limits. You will regain access on 2030-12-01 at 00:00 UTC.",
    "quota": "This request would exceed your account's rate limit. Please try again later.",
    "usage-limit": "This request would exceed your account's rate limit. Please try again later.",
}
_INVALID = "invalid_request_error"
_QUOTA = ("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota")
_OPENAI = {
    "401": ("Incorrect API key provided: dummy.", "invalid_request_error", "invalid_api_key"),
    "402": ("Payment required.", "billing_error", None),
    "403": ("You do not have access to this resource.", "invalid_request_error", "forbidden"),
    "404": ("The model `{model}` does not exist or you do not have access to it.", _INVALID, "model_not_found"),
    "413": ("Request too large", "invalid_request_error", None),
    "429": (
        "Rate limit reached for {model} in organization org-x on tokens per min (TPM). Please try again in 2s.",
        "tokens",
        "rate_limit_exceeded",
    ),
    "500": ("The server had an error while processing your request. Sorry about that!", "server_error", None),
    "503": ("The engine is currently overloaded, please try again later", "server_error", "service_unavailable"),
    "529": ("Overloaded", "server_error", "overloaded"),
    "overloaded": ("The server is overloaded", "server_error", "server_is_overloaded"),
    "overflow": (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 210345 tokens.",
        _INVALID,
        "context_length_exceeded",
    ),
    "credit": (*_QUOTA, "insufficient_quota"),
    "quota": (*_QUOTA, "insufficient_quota"),
    "spend-cap": (*_QUOTA, "insufficient_quota"),
}
_OLLAMA = {
    "404": "model '{model}' not found",
    "429": "too many concurrent requests",
    "500": "llama runner process has terminated: exit status 2",
    "503": "server busy, please try again.  maximum pending requests exceeded",
    "overflow": '{{"error":{{"code":400,"message":"request (8889 tokens) exceeds the available context size (4096 '
    'tokens), try increasing it","type":"exceed_context_size_error"}}}}',
    "overloaded": "server busy, please try again.  maximum pending requests exceeded",
}
MIDWAY_STATUS = {"overflow": 400, "overloaded": 529}
"""The status that an error would have had, were it not told within a stream."""


@dataclass(frozen=True, slots=True)
class ModelApiError:
    """An error as it goes over the wire."""

    status: int
    body: dict[str, Json]
    headers: dict[str, str]


def anthropic(fail: Fail, model: str, now: float) -> ModelApiError:
    """An error of the Messages API; a cap also tells its windows in headers."""
    text = _ANTHROPIC_TEXTS.get(fail.code or str(fail.status), "error").format(model=model)
    kind = _ANTHROPIC_TYPES.get(fail.status, "api_error")
    body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_scripted"}
    return ModelApiError(fail.status, body, {**_unified(fail, now), **fail.headers})


def _unified(fail: Fail, now: float) -> dict[str, str]:
    """The headers by which a subscription's windows are told, where the error is a cap with a reset."""
    if fail.resets_in is None:
        return {}
    week = fail.resets_in > 86400
    soon, late = int(now) + 3 * 3600, int(now) + 4 * 86400
    hit = {"status": "rejected", "utilization": "1.01"}
    free = {"status": "allowed", "utilization": "0.4"}
    windows = {
        "5h": {**(free if week else hit), "reset": str(soon)},
        "7d": {**(hit if week else free), "reset": str(late)},
    }
    flat = {f"{window}-{name}": value for window, facts in windows.items() for name, value in facts.items()}
    facts = {
        "status": "rejected",
        "reset": str(int(now) + fail.resets_in),
        "representative-claim": "seven_day" if week else "five_hour",
        "overage-status": "rejected",
        "overage-disabled-reason": "org_level_disabled",
        **flat,
    }
    headers = {f"anthropic-ratelimit-unified-{name}": value for name, value in facts.items()}
    return {**headers, "retry-after": str(fail.resets_in), "x-should-retry": "true"}


def openai(fail: Fail, model: str, now: float) -> ModelApiError:
    """An error of the Responses and chat APIs; money always comes as 429."""
    headers = dict(fail.headers)
    status = 429 if fail.code in ("credit", "spend-cap") else fail.status
    if fail.code == "usage-limit":
        return _usage_limit(fail, now)
    text, kind, code = _OPENAI.get(fail.code or str(fail.status), ("Invalid request.", "invalid_request_error", None))
    error = {"message": text.format(model=model), "type": kind, "param": None, "code": code}
    return ModelApiError(status, {"error": error}, headers)


def _usage_limit(fail: Fail, now: float) -> ModelApiError:
    error: dict[str, Json] = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
    }
    headers = dict(fail.headers)
    if fail.resets_in is not None:
        error |= {"resets_at": int(now) + fail.resets_in, "resets_in_seconds": fail.resets_in}
        headers |= {
            "x-codex-primary-used-percent": "100.0",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": str(int(now) + fail.resets_in),
            "x-codex-primary-reset-after-seconds": str(fail.resets_in),
            "x-codex-secondary-used-percent": "40.0",
            "x-codex-secondary-window-minutes": "10080",
        }
    return ModelApiError(429, {"error": error}, headers)


def ollama(fail: Fail, model: str, now: float) -> ModelApiError:
    """An error of Ollama's own API: words alone."""
    text = _OLLAMA.get(fail.code or str(fail.status), "something went wrong").format(model=model)
    return ModelApiError(fail.status, {"error": text}, dict(fail.headers))
