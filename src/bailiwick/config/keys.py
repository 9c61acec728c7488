"""Every configuration key: its shape, its default, whether it is a preference or a limit, and who may set it.

A preference is decided by the most specific layer, a limit by the strictest. `*` in a name stands for a name that the
person chooses. Each key without `*` can be set by a variable: `budget.run.usd` by BAILIWICK_BUDGET_RUN_USD.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from bailiwick.config.limits import AllAgree, AnyAsks, Least, LimitRule, Most, Overlap, Ranked, Union
from bailiwick.config.shapes import Ceiling, FilePath, SecretText, Share, Size, Zone
from bailiwick.config.variables import PREFIX
from bailiwick.ids import Json
from bailiwick.lang.fields import Choice, Duration, Flag, ListOf, Number, Shape, Text


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `default` is in seconds or bytes; `rule` makes it a limit; `repository`: may a repository set it."""

    name: str
    shape: Shape
    doc: str
    default: Json = None
    rule: LimitRule | None = None
    repository: bool = True
    names: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, ours first; `names` lists those that count besides the derived one."""
        if "*" in self.name:
            return self.names
        return (PREFIX + self.name.replace(".", "_").upper(), *self.names)


MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86400.0
GB: Final = 10**9
NEVER: Final = False
"""For `repository`: only the operator may set it."""

FEATURES = ("skills", "brain", "proposals", "service", "mcp")
BACKENDS = ("claude", "codex", "copilot", "openai", "ollama", "command", "simulate")

_TEXT = Text(empty=False)
_NAMES = ListOf(_TEXT)
_USD = Ceiling(Number(low=0))
_COUNT = Ceiling(Number(low=0, whole=True))
_TIMES = Number(low=0, whole=True)
_SPAN = Ceiling(Duration())
_URL = Text(pattern=r"[a-z][a-z0-9+.-]*://\S+|[A-Za-z0-9.-]+(:[0-9]+)?", expects="a URL")
_LEAST = Least()

_GENERAL = (
    Key("version", Number(low=1, high=1, whole=True), "the version of this file's language", 1),
    Key("backend", _TEXT, "the way to reach an agent", "claude", names=("AGENT_CLI",)),
    Key("model", _TEXT, "the model, where neither node nor power tier names one", names=("AGENT_MODEL",)),
    Key("base", _TEXT, "the branch that work starts from"),
    Key("attempts", _TIMES, "fix calls after a red gate", 3, names=("RETRY_CAP",)),
    Key("conventions", _TEXT, "the file with the repository's conventions", names=("AGENT_CONFIG",)),
    Key("runs_dir", FilePath(), "where run directories are written", repository=NEVER, names=("AGENT_RUNS_DIR",)),
    Key(
        "models_file",
        FilePath(),
        "the models of skills",
        repository=NEVER,
        names=("BAILIWICK_MODELS", "SUPERVISOR_MODELS_FILE"),
    ),
    Key("sessions_dir", FilePath(), "the call logs of skills", repository=NEVER, names=("SUPERVISOR_SESSIONS_DIR",)),
    Key("brain_dir", FilePath(), "what skills remember", repository=NEVER, names=("SUPERVISOR_BRAIN_DIR",)),
    Key(
        "skills_dir", FilePath(), "skills and models of the person", repository=NEVER, names=("SUPERVISOR_CONFIG_DIR",)
    ),
    Key("brain.ingest_url", _URL, "where new notes are also posted", repository=NEVER, names=("INGEST_BASE_URL",)),
    Key("brain.briefs", Flag(), "whether approved notes go into briefs", default=True),
    Key("brain.tokens", _TIMES, "tokens of notes in a brief, at most", 1500),
    Key("roots", ListOf(FilePath()), "where skills may work", [], Overlap(), NEVER),
    Key("time.zone", Zone(), "the zone in which times are shown and a day begins"),
    Key("power.*.high", _TEXT, "the strongest model of a backend"),
    Key("power.*.medium", _TEXT, "the usual model of a backend"),
    Key("power.*.low", _TEXT, "the cheapest model of a backend"),
    *(Key(f"features.{name}", Flag(), f"whether {name} can be used", True, AllAgree()) for name in FEATURES),
)

_MONEY = (
    Key("budget.run.usd", _USD, "dollars per run tree", 10.0, _LEAST),
    Key("budget.run.tokens", _COUNT, "tokens per run tree", 5_000_000, _LEAST),
    Key("budget.run.agent_calls", _COUNT, "agent calls per run tree", None, _LEAST),
    Key("budget.run.wall", _SPAN, "time per run tree", 12 * HOUR, _LEAST),
    Key("budget.day.usd", _USD, "dollars per day", 40.0, _LEAST),
    Key("budget.day.tokens", _COUNT, "tokens per day", None, _LEAST),
    Key("budget.day.agent_calls", _COUNT, "agent calls per day", None, _LEAST),
    Key("budget.call.usd", Number(low=0), "dollars reserved for a call whose node says nothing", 1.0, _LEAST),
    Key(
        "budget.unknown_cost",
        Choice(("allow", "estimate", "refuse")),
        "what happens where a price is unknown",
        "estimate",
        Ranked((("allow",), ("estimate",), ("refuse",))),
    ),
    Key(
        "night.until",
        Text(pattern=r"([01]?[0-9]|2[0-3]):[0-5][0-9]", expects="a time such as 07:00"),
        "when unattended processes start nothing new any more",
    ),
    Key("night.max_open", _COUNT, "proposals that may wait for a person before a new one is begun", None, _LEAST),
    Key("night.agents", Number(low=1, whole=True), "agents at work at once on this machine, over all runs", 2, _LEAST),
    Key("night.keep_awake", Flag(), "keep the machine awake while an agent works", True, repository=NEVER),
    Key("mcp.workflows", _NAMES, "workflows that MCP clients may start, by name", [], Overlap(), NEVER),
    Key("mcp.budget", _USD, "dollars for a run that an MCP client starts", 5.0, _LEAST, NEVER),
    Key("credentials.*.backend", _TEXT, "the backend it is for", repository=NEVER),
    Key("credentials.*.billing", Choice(("metered", "subscription")), "how it is paid", repository=NEVER),
    Key("credentials.*.token", SecretText(), "the token, as a reference", repository=NEVER),
    Key("credentials.*.reserve.five_hour", Share(), "the part of the window left free", None, Most(), NEVER),
    Key("credentials.*.reserve.week", Share(), "the part of the week left free", None, Most(), NEVER),
    Key("credentials.*.budget.usd", _USD, "dollars per day", None, _LEAST, NEVER),
    Key("credentials.*.budget.tokens", _COUNT, "tokens per day", None, _LEAST, NEVER),
)


def _knob(name: str, shape: Shape, default: Json, doc: str) -> Key:
    suffix = "_S" if isinstance(shape, Duration) else ""
    return Key(f"agents.{name}", shape, doc, default, names=(f"AGENT_{name.upper()}{suffix}",))


_AGENTS = (
    _knob("max_output_retries", _TIMES, 2, "times an answer is asked for again"),
    _knob("max_invoke_retries", _TIMES, 4, "times a transient failure is tried again"),
    _knob("invoke_backoff_base", Duration(), 15.0, "the first pause after a transient failure"),
    _knob("invoke_backoff_cap", Duration(), 300.0, "the longest pause after a transient failure"),
    _knob("max_compact_attempts", _TIMES, 2, "times a session is compacted"),
    _knob("max_rephrase_attempts", _TIMES, 3, "times a task is put in other words"),
    _knob("use_default_outputs", Flag(), True, "whether exhausted nodes of files without a version take their default"),
    _knob("result_timeout", Duration(), HOUR, "the total clock of a turn"),
    _knob("silence_timeout", Duration(), 10 * MINUTE, "the longest silence of a turn"),
    _knob("cap_default_wait", Duration(), HOUR, "the wait for a cap that names no reset"),
    _knob("cap_wait_margin", Duration(), 2 * MINUTE, "added to a cap's reset"),
    _knob("cap_tick", Duration(), 10 * MINUTE, "how often a cap wait says that it waits"),
    _knob("max_cap_waits", _TIMES, 48, "cap waits in a visit"),
    _knob("cap_max_wait", Duration(), 8 * DAY, "the longest wait for a cap"),
    Key("agents.max_attempts", Number(low=1, whole=True), "attempts in a visit, whatever the rungs", 12),
    Key("agents.outage_wait", Duration(), "how long an outage is waited for", 12 * HOUR),
    Key("agents.command", _TEXT, "the program of the command backend", repository=NEVER, names=("AGENT_CMD",)),
    Key("agents.allowed_backends", _NAMES, "backends that may be used; all where not set", None, Overlap()),
    Key("agents.allowed_models", _NAMES, "models that may be used; all where not set", None, Overlap()),
    Key("agents.models.*.also", _NAMES, "further models that turns of a backend may ask", [], repository=NEVER),
    Key(
        "agents.answer_tokens",
        Number(low=1024, whole=True),
        "tokens of an answer, where a priced request names no limit",
        16_000,
    ),
    Key(
        "agents.allow_exposed_credentials",
        Flag(),
        "whether an agent may hold a credential that can't be brokered",
        False,
        AllAgree(),
    ),
)

_FENCE = (
    Key(
        "sandbox.profile",
        Choice(("auto", "bwrap", "container", "none")),
        "what agents and their code run in",
        "auto",
        Ranked((("none",), ("auto", "bwrap", "container"))),
    ),
    Key("sandbox.allow", _NAMES, "hosts an agent may reach besides the model", [], Overlap()),
    Key("sandbox.mounts", ListOf(FilePath()), "directories an agent may read besides its own", [], Overlap()),
    Key("sandbox.disk", Size(), "bytes that one sandbox may have on disk", 20 * GB, _LEAST),
    Key("sandbox.files", Number(low=1, whole=True), "files that one sandbox may have on disk", 500_000, _LEAST),
    Key("sandbox.unattended_none", Flag(), "whether a run without a sandbox may go unwatched", False, AllAgree()),
    Key("protected", _NAMES, "paths whose changes need a person, besides the gate's", [], Union()),
    Key(
        "publish.mode",
        Choice(("ask", "auto", "never")),
        "whether proposals leave this machine",
        "ask",
        Ranked((("auto",), ("ask",), ("never",))),
        NEVER,
    ),
    Key("publish.draft", Flag(), "pull requests open as drafts", True, AnyAsks(), NEVER),
    Key("publish.push_to", Choice(("origin", "fork")), "where branches are pushed", "origin", repository=NEVER),
    Key("publish.labels", _NAMES, "labels of pull requests", [], repository=NEVER),
    Key("commit.author", Text(pattern=r"[^<>\n]+ <[^<>\s]+>", expects="an author: Name <mail>"), "who commits"),
    Key("commit.signoff", Flag(), "commits carry a sign-off", default=False),
    Key("commit.sign", Flag(), "commits are signed", default=False),
    Key("retention.transcripts", Duration(), "how long transcripts are kept", 14 * DAY, _LEAST),
    Key("retention.runs", Duration(), "how long ended runs are kept", 30 * DAY, _LEAST),
    Key("retention.worktrees", Duration(), "how long a worktree outlives its proposal", 7 * DAY, _LEAST),
    Key("retention.environments", Duration(), "how long an unused environment is kept", 14 * DAY, _LEAST),
    Key("retention.max_disk", Size(), "bytes that all of it may take", 20 * GB, _LEAST),
    Key("retention.min_free", Size(), "free bytes below which nothing new starts", 5 * GB, Most()),
)

_OUTSIDE = tuple(
    Key(name, shape, doc, default, repository=NEVER, names=names)
    for name, shape, doc, default, names in (
        ("forges.*.type", Choice(("github", "gitea", "forgejo")), "which kind", None, ()),
        ("forges.*.url", _URL, "where it is", None, ()),
        ("forges.*.token", SecretText(), "the token, as a reference", None, ()),
        ("endpoints.*.url", _URL, "where models answer", None, ()),
        ("endpoints.*.key", SecretText(), "the API key, as a reference", None, ()),
        ("endpoints.*.free", Flag(), "whether what it answers costs nothing", None, ()),
        (
            "endpoints.*.cloud",
            Flag(),
            "whether prompts leave this network; else its address decides",
            None,
            (),
        ),
        ("endpoints.*.concurrency", Number(low=1, whole=True), "calls at once", None, ()),
        ("endpoints.*.num_ctx", Number(low=1, whole=True), "the context window that is asked for", None, ()),
        ("secrets.provider", Choice(("environment", "file")), "where secrets are", "environment", ()),
        ("secrets.file", FilePath(), "the file of the file provider", None, ()),
        ("service.host", _TEXT, "where the service listens", "127.0.0.1", ()),
        ("service.port", Number(low=0, high=65535, whole=True), "its port", 3200, ("SUPERVISOR_PORT",)),
        ("service.public_url", _URL, "how others reach it", None, ()),
        ("network.proxy", _TEXT, "the proxy for HTTPS", None, ("HTTPS_PROXY", "https_proxy")),
        ("network.no_proxy", _TEXT, "hosts reached without the proxy", None, ("NO_PROXY", "no_proxy")),
        ("network.ca_file", FilePath(), "certificates trusted besides the system's", None, ()),
    )
)

KEYS: tuple[Key, ...] = (*_GENERAL, *_MONEY, *_AGENTS, *_FENCE, *_OUTSIDE)

CONCRETE_VARIABLES = {
    "LITELLM_BASE_URL": "endpoints.litellm.url",
    "LLAMA_SWAP_URL": "endpoints.llama-swap.url",
    "OLLAMA_HOST": "endpoints.ollama.url",
}
"""Variables of others that stand for one name below a `*`."""


@cache
def keys_by_name() -> dict[str, Key]:
    """All keys by their name, `*` included."""
    return {key.name: key for key in KEYS}


@cache
def find_key(name: str) -> Key | None:
    """The key that a full name such as `power.claude.high` means."""
    known = keys_by_name()
    if name in known:
        return known[name]
    parts = name.split(".")
    return next((key for key in KEYS if "*" in key.name and _matches(key.name.split("."), parts)), None)


def _matches(pattern: list[str], parts: list[str]) -> bool:
    return len(pattern) == len(parts) and all(p in ("*", q) and q for p, q in zip(pattern, parts, strict=True))
