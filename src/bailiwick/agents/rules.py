"""What failed turns look like, as data: each rule has the real message it was made from. Pure.

Texts are matched at their start, after the envelopes that tools put around them are taken off; statuses, types and
exit codes are matched whole; upper and lower case are the same everywhere. A rule without a recording or a quoted
message behind it is not accepted: its source is the recording (`cli/case`), the report of the message
(`owner/repository#number`) or the program that writes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from bailiwick.engine.failures import FailureKind


class Where(StrEnum):
    """What a rule looks at. An `answer` is matched whole: a sentence that is nothing but a tool's error."""

    STATUS = "status"
    TYPE = "type"
    TEXT = "text"
    ANSWER = "answer"
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class FailureRule:
    """One way to tell a class. `weak` holds only where no other rule fits; `monthly` resets with the month (UTC)."""

    name: str
    kind: FailureKind
    where: Where
    pattern: re.Pattern[str]
    quote: str
    source: str
    weak: bool = False
    transient: bool = False
    monthly: bool = False

    def fits(self, subject: str) -> bool:
        """Whether `subject`, with its envelopes off and its quotes made plain, is what this rule knows."""
        found = self.pattern.match(subject) if self.where is Where.TEXT else self.pattern.fullmatch(subject)
        return found is not None


# Three lines a rule: class, where, name | source | flags; the pattern; the message it was made from (its start).
_TABLE = r"""
spawn text flag-unexpected | codex/badflag
unexpected argument '
error: unexpected argument '--nosuchflag' found
spawn text flag-unknown | anthropics/claude-code#36264
unknown option '-
error: unknown option '--session-id'
spawn text flag-misplaced | copilot/badflag
Invalid command format\.
error: Invalid command format.
spawn text flag-python | python argparse
[\w.-]+: error: (?:unrecognized arguments|the following arguments are required|argument )
agent.py: error: unrecognized arguments: --nosuch
spawn text flag-needs | claude/plain.noverbose
When using --print,
Error: When using --print, --output-format=stream-json requires --verbose
spawn text flag-conflict | claude/sess.4b-resume+session-id-nofork
--[a-z-]+ can only be used with
Error: --session-id can only be used with --continue or --resume if --fork-session is also specified.
spawn text schema-invalid | claude/schema.invalid-schema
--json-schema is not (?:a )?valid JSON
Error: --json-schema is not valid JSON: JSON Parse error: Expected '}'
spawn text schema-file | codex/schema.missing-file
(?:Output schema file \S+ is not valid JSON|Failed to read output schema file )
Failed to read output schema file nope.json: No such file or directory (os error 2)
spawn text config-broken | codex/wire-chat
Error loading config\.toml:
Error loading config.toml: `wire_api = "chat"` is no longer supported.
spawn text untrusted | codex/nogit
Not inside a trusted directory and --skip-git-repo-check
Not inside a trusted directory and --skip-git-repo-check was not specified.
spawn text no-prompt | codex/stdin.empty
No prompt provided(?: via stdin)?\.
No prompt provided via stdin.
spawn text no-model | copilot/nomodel
BYOK providers require an explicit model\.
BYOK providers require an explicit model. Run `copilot help providers` for configuration details.
spawn text no-directory | codex/cd.missing
No such file or directory \(os error 2\)
Error: No such file or directory (os error 2)
spawn text no-program | python OSError
\[Errno (?:2|7|8|13)\]
[Errno 2] No such file or directory: 'claude'
spawn text session-unknown | claude/sess.10b-nopersist-resume
No conversation found with session ID: |No session, task, or name matched '
No conversation found with session ID: aaaaaaaa-0000-4000-8000-000000000010
spawn text thread-unknown | codex/sess.6-resume-unknown
thread/resume: thread/resume failed: no rollout found
Error: thread/resume: thread/resume failed: no rollout found for thread id 01a1e0cb-0000-7000-8000-000000000000
spawn text session-in-use | claude/sess.2-reuse-id
Session ID \S+ is already in use\.
Error: Session ID aaaaaaaa-0000-4000-8000-000000000001 is already in use.
spawn text model-unknown | claude/r404
There's an issue with the selected model \(
There's an issue with the selected model (claude-opus-5-5). It may not exist or you may not have access to it.
spawn text model-missing | codex/r404
(?:The model `[^`]+` does not exist or you do not have access|Model '[^']+' not found on provider)
The model `stub-model` does not exist or you do not have access to it.
spawn type not-found | claude/r404
not_found_error|model_not_found
not_found_error
spawn status status-404 | copilot/r404 | weak
404
404
spawn exit exit-not-found | posix shell | weak
126|127
127
auth type auth-type | claude/oauth.r401
authentication_(?:failed|error)|authentication|permission_error|invalid_api_key|UNAUTHENTICATED
authentication_failed
auth status status-401 | claude/r401
401|403
401
auth text not-logged-in | claude/noauth
Not logged in · Please run /login
Not logged in · Please run /login
auth text key-invalid | claude/r401
Invalid API key ·
Invalid API key · Fix external API key
auth text key-incorrect | codex/r401
Incorrect API key provided
Incorrect API key provided: dummy.
auth text failed-to-authenticate | claude/r403
Failed to authenticate[.:]
Failed to authenticate. API Error: 403 Your API key does not have permission to use the specified resource.
auth text provider-refused | copilot/r401
Authentication failed with provider at
Authentication failed with provider at http://127.0.0.1:46009/v1 (HTTP 401).
auth text no-credential | copilot/noauth
No authentication information found\.
Error: No authentication information found.
auth text key-unset | codex/nokey
Missing environment variable: `
Missing environment variable: `STUB_KEY`.
auth text token-expired | anthropics/claude-code#33811
OAuth token has expired\.
OAuth token has expired. Please obtain a new token or refresh your existing token.
auth text token-stale | openai/codex#6498
Your access token could not be refreshed
Your access token could not be refreshed because your refresh token was already used. Please log out and sign in
auth answer answer-login | claude/noauth
(?:Not logged in|Invalid API key) · [^\n]{1,80}
Not logged in · Please run /login
billing type billing-type | copilot/quota
billing_error|insufficient_quota|quota_exceeded
insufficient_quota
billing type limit-code | openai api errors
credit_balance_exhausted|(?:organization|project)_spend_limit_exceeded|organization_usage_limit_exceeded
project_spend_limit_exceeded
billing status status-402 | claude/usage_402
402
402
billing text credit-low | claude/credit
(?:Credit balance is too low|Your credit balance is too low)
Credit balance is too low
billing text quota-codex | codex/quota
Quota exceeded\. (?:Check your plan|Upgrade to increase)
Quota exceeded. Check your plan and billing details.
billing text quota-openai | copilot/usage_402
You exceeded your current quota, please check your plan and billing details
You exceeded your current quota, please check your plan and billing details.
billing text quota-copilot | github/copilot-cli#2063
You have no quota\b
402 You have no quota (Request ID: 0DAE:25E807)
billing text spend-limit | anthropics/claude-code#67939
You've hit your monthly spend limit
You've hit your monthly spend limit · raise it at claude.ai/settings/usage
billing answer answer-credit | claude/credit
Credit balance is too low
Credit balance is too low
cap type cap-type | claude/oauth.r429_unified
usage_limit_reached
usage_limit_reached
cap type spend-tier | anthropic api errors | monthly
enforced_spend_limit_reached
enforced_spend_limit_reached
cap text limit-hit | claude/oauth.r429_unified
You(?:'ve| have) hit your (?:[\w-]+(?:'s)? ){0,3}?limit(?:\b|$)
You've hit your 5-hour limit · resets 10:49pm (UTC)
cap text limit-reached | anthropics/claude-code#7892
(?:5-hour|[Ss]ession|[Ww]eekly|Opus(?: weekly)?) limit reached · resets
5-hour limit reached ∙ resets 9pm
cap text limit-epoch | anthropics/claude-code#3169
Claude (?:AI )?usage limit reached(?:\||\. Your limit will reset at )
Claude AI usage limit reached|1752001200
cap text limit-plain | copilot/usage_limit
The usage limit has been reached$
The usage limit has been reached
cap text spend-cap | claude/spendcap
You have reached your specified (?:workspace )?API usage limits\.
You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.
cap text spending-cap | workhorse-agent 0.1.0
Spending cap reached(?:$|\s*[\n.,;:!·(|-]| resets .{0,12}\d)
Spending cap reached resets 3:50am
cap text usage-limit-resets | workhorse-agent 0.1.0
usage limit, resets .{0,12}\d
usage limit, resets 3:50am
cap text limit-has-been-reached | workhorse-agent 0.1.0
(?:5-hour|session|weekly|usage) limit has been reached(?:$|\s*[\n.,;:!·(|-]| resets .{0,12}\d)
Weekly limit has been reached
cap answer answer-limit | anthropics/claude-code#77262
You(?:'ve| have) hit your (?:[\w-]+(?:'s)? ){0,3}?limit · resets [^\n]{2,60}(?:\n/[a-z-]+ [^\n]{1,100})?
You've hit your session limit · resets 1:10am (UTC)
cap answer answer-reached | anthropics/claude-code#12802
(?:5-hour|[Ss]ession|[Ww]eekly) limit reached · resets [^\n]{2,120}
5-hour limit reached · resets 3pm (Europe/Stockholm) · /upgrade to Max 20x or turn on /extra-usage
cap answer answer-epoch | anthropics/claude-code#2087
Claude (?:AI )?usage limit reached\|\d{10,13}
Claude AI usage limit reached|1749924000
rate_limit type rate-type | claude/r429
rate_limit(?:_error|_exceeded)?|too_many_requests
rate_limit_error
rate_limit status status-429 | copilot/r429
429
429
rate_limit text rate-rejected | claude/r429_long
Request rejected \(429\)
API Error: Request rejected (429) · This request would exceed your organization's rate limit of 50,000 input tokens
rate_limit text rate-server | claude/oauth.r429
Server is temporarily limiting requests \(not your usage limit\)
API Error: Server is temporarily limiting requests (not your usage limit) · This request would exceed your
rate_limit text rate-openai | copilot/r429
Rate limit reached for \S+ in organization
Rate limit reached for stub-model in organization org-stub on tokens per min (TPM): Limit 30000, Used 29000,
rate_limit text rate-anthropic | claude/quota
This request would exceed your (?:organization|account)'s rate limit
This request would exceed your account's rate limit. Please try again later.
rate_limit text rate-exceeded | workhorse-agent 0.1.0
Rate limit exceeded(?:$|\s*[\n.,;:!·(|-])
Rate limit exceeded
overloaded type overloaded-type | claude/r529
overloaded(?:_error)?|server_is_overloaded
overloaded_error
overloaded status status-5xx | claude/r503 | weak
5\d\d
503
overloaded text overloaded-claude | claude/r529
(?:Repeated )?529 Overloaded\b
API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary.
overloaded text server-side-claude | claude/r500
5\d\d [^.\n]{1,60}\. This is a server-side issue
API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.
overloaded text demand-codex | codex/r500
We're currently experiencing high demand
We’re currently experiencing high demand, which may cause temporary errors.
overloaded text capacity-codex | codex/sse_overload
Selected model is at capacity\.
Selected model is at capacity. Please try a different model.
overloaded text overloaded-openai | copilot/sse_overload
The (?:server|engine) is (?:currently )?overloaded
The server is overloaded
overloaded text error-openai | copilot/r500
The server had an error while processing your request\.
The server had an error while processing your request. Sorry about that!
overloaded text status-words | workhorse-agent 0.1.0
(?:HTTP )?(?:500 Internal Server Error|502 Bad Gateway|503 Service Unavailable|504 Gateway Time-?out)(?:$|\s*[^\w\s])
503 Service Unavailable
unreachable type connection-type | claude/connrefused
connection_failed
connection_failed
unreachable text refused-claude | claude/connrefused
Connection (?:refused|dropped)(?:$| —| \(|\.)
API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)
unreachable text unable-claude | anthropics/claude-code#33355
Unable to connect to API\b
API Error: Unable to connect to API (ConnectionRefused)
unreachable text request-timed-out | claude/hang.apitimeout5s
Request timed out\.?$
Request timed out
unreachable text malformed-claude | claude/empty_body
API returned an empty or malformed response \(HTTP 200\)
API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the
unreachable text stream-codex | codex/drop
stream disconnected before completion:
stream disconnected before completion: error sending request
unreachable text network-codex | codex/ignoreuserconfig
(?:waiting for network|Connection failed: error sending request)
Reconnecting... waiting for network (Connection failed: error sending request)
unreachable text http-copilot | copilot/drop_mid
Failed native model HTTP request:
Failed native model HTTP request: error decoding response body: error reading a body from connection: unexpected EOF
unreachable text stream-copilot | copilot/empty_body
Failed to finalize chat-completions stream:
Failed to finalize chat-completions stream: request ended without sending any chunks
unreachable text network-error | workhorse-agent 0.1.0
Network error: (?:\w+ )?(?:ECONN(?:RESET|REFUSED|ABORTED)|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|E(?:HOST|NET)UNREACH)\b
Network error: ECONNRESET
unreachable text errno-network | python OSError
\[Errno (?:-2|-3|-5|32|101|103|104|110|111|113)\]
[Errno 111] Connection refused
unreachable text attempts-failed | fractal-analytics-platform/fractal-client#586
All connection attempts failed$
All connection attempts failed
unreachable text disconnected | ollama/ollama-python#436
Server disconnected without sending a response\.
Server disconnected without sending a response.
overflow type overflow-type | codex/overflow
prompt_too_long|context_length_exceeded|request_too_large|exceed_context_size_error|input_too_large
context_length_exceeded
overflow status status-413 | claude/r413
413
413
overflow text prompt-too-long | claude/overflow
Prompt is too long(?:$| ·|: [\d,]+ tokens > [\d,]+)
Prompt is too long · the request is ~210345 tokens (limit 200000) but this conversation is only ~2628 tokens
overflow text request-too-large | claude/r413
Request too large(?: \(max |$|,)
Request too large (max 32MB). Accumulated images and attachments in the conversation pushed the request over the
overflow text out-of-room | codex/overflow_sse
Codex ran out of room in the model's context window\.
Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.
overflow text context-openai | copilot/overflow
This model's maximum context length is \d+ tokens\.
This model's maximum context length is 128000 tokens. However, your messages resulted in 210345 tokens.
overflow text prompt-rejected | copilot/r413
The provider rejected the prompt as too long
The provider rejected the prompt as too long, but automatic recovery could not reduce it.
overflow text input-too-long | codex/stdin.big12MB
turn/start: turn/start failed: Input exceeds the maximum length of
Error: turn/start: turn/start failed: Input exceeds the maximum length of 1048576 characters. (code -32602)
overflow text context-llama | ggml-org/llama.cpp#15780
(?:the request|request \(\d+ tokens\)) exceeds the available context size|Context size has been exceeded\.
the request exceeds the available context size. try increasing the context size or enable context shift
overflow text compaction-failed | claude/sess.9c-compact-overflow
Compaction failed · conversation could not be reduced
Compaction failed · conversation could not be reduced below the context limit
overflow answer answer-overflow | claude/overflow_mid
Prompt is too long
Prompt is too long
refused type refusal-type | claude/refusal
refusal|content_filter|ContentFilterError
refusal
refused text safeguards | claude/refusal
[\w .-]{1,40}'s safeguards flagged this message
API Error: Opus 5.5's safeguards flagged this message (https://www.anthropic.com/legal/aup).
refused text usage-policy | claude-2.1.197/refusal
Claude Code is unable to respond to this request, which appears to violate our Usage Policy
API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy
refused answer answer-filtered | copilot/refusal
The model returned no content because the response was blocked by content filtering\.
The model returned no content because the response was blocked by content filtering.
bad_output type output-type | claude/schema.so_bad
max_output_tokens|structured_output_retry_exhausted|error_max_structured_output_retries
structured_output_retry_exhausted
budget type budget-type | claude/maxbudget1
budget_exhausted|error_max_budget_usd
budget_exhausted
budget text budget-text | claude/maxbudget1
Reached maximum budget \(\$
Reached maximum budget ($1)
bad_output text output-too-long | codex/max_tokens
(?:Claude's response exceeded the \d+ output token maximum|Incomplete response returned, reason: max_)
Incomplete response returned, reason: max_output_tokens
bad_output text output-schema | claude/schema.so_bad
Failed to provide valid structured output after \d+ attempts
Failed to provide valid structured output after 5 attempts
empty text no-response | copilot/empty
No response was returned\.
No response was returned. Send your message again to retry.
crash text busy | python OSError | transient
\[Errno (?:11|12|26)\]
[Errno 26] Text file busy: 'claude'
crash text not-started-now | python OSError | transient
'[^'\n]+' could not be started: (?:Text file busy|Resource temporarily unavailable|Cannot allocate memory)
'claude' could not be started: Text file busy
crash text aborted | claude/sig.SIGINT.hang | transient
\[ede_diagnostic\]
[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null
crash exit ended-by-others | claude/sig.SIGTERM.tool | weak transient
-1|-2|-9|-15|129|130|137|143
143
"""


@cache
def rules() -> tuple[FailureRule, ...]:
    """All rules, read from the table once."""
    lines = [line for line in _TABLE.splitlines() if line]
    return tuple(_read(*lines[at : at + 3]) for at in range(0, len(lines), 3))


def _read(head: str, pattern: str, quote: str) -> FailureRule:
    what, source, *flags = head.split(" | ")
    kind, where, name = what.split()
    said = flags[0].split() if flags else []
    return FailureRule(
        name,
        kind=FailureKind(kind),
        where=Where(where),
        pattern=re.compile(pattern, re.DOTALL | re.IGNORECASE),
        quote=quote,
        source=source,
        weak="weak" in said,
        transient="transient" in said,
        monthly="monthly" in said,
    )
