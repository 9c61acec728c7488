"""For every configuration key, something that can be seen to change with it.

A probe loads the configuration of a small world and looks at what the part that acts on the key makes of it: never at
the configuration itself. Where a whole program is needed, a test stands for the probe, by its name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bailiwick.clock import ManualClock
from bailiwick.config.service import Config
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.proposals.model import Proposal

CLOCK = ManualClock()
See = Callable[[Config], object]


@dataclass(frozen=True, slots=True)
class Probe:
    """Sets `name` to `value` (below `around`, what else has to be set) and looks."""

    name: str
    value: Json
    see: See
    around: Json = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A test that sets the key and sees the difference: `file::name`, with the word by which it sets the key."""

    test: str
    word: str


def raised(act: Callable[[], object]) -> str:
    """What went wrong, or nothing."""
    try:
        act()
    except BailiwickError as error:
        return error.sentence
    return ""


@contextmanager
def swapped(module: str, name: str, fake: object) -> Iterator[None]:
    """Put a fake into a module meanwhile."""
    home = import_module(module)
    real = getattr(home, name)
    setattr(home, name, fake)
    try:
        yield
    finally:
        setattr(home, name, real)


def agents(config: Config) -> object:
    """What turns of agents are made with."""
    from bailiwick.agents.settings import read_settings

    return read_settings(config)


def tier(config: Config) -> object:
    """The models that nodes of each power ask."""
    from bailiwick.agents.settings import read_settings
    from bailiwick.engine.graph import Work

    settings = read_settings(config)
    nodes = [Work(id="a", type="agent", next="b", spec={"power": power}) for power in ("high", "medium", "low")]
    return [settings.choose(node) for node in nodes]


def run_limits(config: Config) -> object:
    """What a new run may use."""
    from bailiwick.engine.graph import Budget
    from bailiwick.runs.start import starting_limits

    return starting_limits(config, Budget())


def proposals(config: Config) -> object:
    """How proposals are made and published."""
    from bailiwick.proposals.settings import read_settings

    assert config.repository is not None
    found = read_settings(config, config.repository.root, CLOCK)
    token = raised(found.token) if found.token else None
    return (
        found.mode,
        found.draft,
        found.labels,
        found.author,
        found.signoff,
        found.sign,
        found.base,
        found.site,
        token,
        found.network,
    )


def models(config: Config) -> object:
    """Where models answer."""
    from bailiwick.routing.endpoints import Endpoints

    found = Endpoints.of(config)
    return [(name, raised(lambda name=name: found.at(name)) or found.at(name)) for name in found.names()]  # type: ignore[misc]


def upstream(config: Config) -> object:
    """How the broker reaches a model."""
    from bailiwick.agents.settings import read_settings

    return read_settings(config).endpoints


def broker(config: Config) -> Any:
    """Who pays for turns."""
    from bailiwick.agents.broker_access import BrokerAccess

    return BrokerAccess(config, CLOCK)


def credential(config: Config) -> object:
    """What claude's turns are paid with."""
    return raised(lambda: broker(config).credential("claude")) or broker(config).credential("claude")


def reserve(config: Config) -> object:
    """The parts of windows that are left free."""
    return broker(config)._reserves("mine")


def purse(config: Config) -> object:
    """What a credential may spend a day."""
    from bailiwick.app.agents import AgentServices

    app: Any = SimpleNamespace(config=config, clock=CLOCK)
    return AgentServices(app, None).daily("claude")


def broker_rules(config: Config) -> object:
    """What the broker lets through."""
    backend = SimpleNamespace(name="claude", capabilities=SimpleNamespace(default_model="m"))
    return broker(config)._rules(backend, SimpleNamespace(model="m", env={}))


def sandboxes(config: Config) -> object:
    """The sandbox that is opened."""
    from bailiwick.sandbox.service import open_sandboxes

    async def opened() -> object:
        try:
            found = await open_sandboxes(config, attended=False)
        except BailiwickError as error:
            return error.sentence
        return found.sandbox.name, found.limits, found.mounts

    return asyncio.run(opened())


def features(config: Config) -> object:
    """Which parts can be used."""
    from bailiwick.service.features import require_feature

    return [raised(lambda name=name: require_feature(config, name)) for name in ("service", "mcp")]  # type: ignore[misc]


def skills(config: Config) -> object:
    """Whether a skill can be called."""
    from bailiwick.skills.service import Caller, Skills

    caller: Any = SimpleNamespace(config=config)
    return raised(lambda: asyncio.run(Skills.call(caller, "nosuch", {}, Caller("me", "cli", print, asyncio.Event()))))


def brain(config: Config) -> object:
    """Where notes are, and whether there are any."""
    from bailiwick.brain.service import Brain

    made: list[object] = []

    def opened() -> None:
        found = Brain.open(config, CLOCK)
        made.append((found.folder, found.ingest_url))
        found.close()

    return raised(opened), made


def repo(config: Config) -> object:
    """Whether proposals can be made at all."""
    from bailiwick.proposals.repository import open_repository

    assert config.repository is not None
    root = config.repository.root
    store: Any = SimpleNamespace()
    return raised(lambda: asyncio.run(open_repository(config, root, store, CLOCK, by="me")))


def folders(config: Config) -> object:
    """Where things are written and looked for."""
    from bailiwick.routing.call_log import sessions_folder
    from bailiwick.routing.models_file import _places
    from bailiwick.skills.folders import person_folder

    return config.runs_dir, sessions_folder(config), person_folder(config), _places(config, None)


def secrets(config: Config) -> object:
    """What a reference stands for."""
    from bailiwick.config.secrets import Secrets

    return raised(lambda: Secrets.of(config).text("${secret:agents/claude#token}"))


def service(config: Config) -> object:
    """Where the service listens."""
    from bailiwick.cli.commands.serve import _wanted

    given = {"allow_anonymous_loopback": False, "no_worker": True, "concurrency": 1}
    return _wanted(SimpleNamespace(config=config), given)  # type: ignore[arg-type]


def clients(config: Config) -> object:
    """What MCP clients may start, for how much."""
    from bailiwick.service.offering import licence_of

    return licence_of(config)


def doctor(config: Config) -> object:
    """What doctor says of disk and sleep."""
    from bailiwick.doctor.service import _awake, _disk

    return _awake(config), _disk(config)


def places(config: Config) -> object:
    """How many agents work at once."""
    from bailiwick.agents.workplaces import Workplaces

    return Workplaces.of(config).most


def preflight(config: Config) -> object:
    """Whether something new may begin; one proposal waits."""
    from bailiwick.journal.opening import opened_store
    from bailiwick.pipelines.preflight import Preflight

    folder = config.paths.make_state() / "proposals"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "abcdef0123.json").write_text(json.dumps(PROPOSAL))

    async def waiting() -> list[str]:
        async with opened_store(config.paths.state, CLOCK) as store:
            runtime: Any = SimpleNamespace(store=store)
            found = Preflight(config, runtime, runtime, lambda _line: None)
            await found.waiting()
            return [problem.what for problem in found.found]

    return asyncio.run(waiting())


PROPOSAL = Proposal(
    id="abcdef0123", run="r1", repository="/r", branch="agent/x", base="b", commit="c", tree="t", title="x",
    kind="issue-to-pr", report="d", created=1.0, updated=1.0,
).to_json()  # fmt: skip


def sandbox(config: Config) -> object:
    """Whether there is room for anything new."""
    from bailiwick.config.room import require_room

    return bool(raised(lambda: require_room(config)))


def protection(config: Config) -> object:
    """What a gate protects besides its own."""
    from bailiwick.gate.from_config import whereabouts

    git_store = SimpleNamespace(repository=Path("/r"))
    return whereabouts(config, git_store, SimpleNamespace(toolchains=())).protected  # type: ignore[arg-type]


def egress(config: Config) -> object:
    """The hosts that a turn may reach."""
    from bailiwick.app.agents import AgentServices

    async def none() -> None:
        return None

    app: Any = SimpleNamespace(config=config, clock=CLOCK, sandboxes=none)
    return asyncio.run(AgentServices(app, None).turn_sandbox()).allow


def order(config: Config) -> object:
    """How often a red gate is fixed."""
    from bailiwick.cli.pipelines.service import PipelineRunner

    request = SimpleNamespace(pattern="issue-to-pr", attempts=None, base=None, allow=(), known_red=False)
    desk_ = SimpleNamespace(git_store=SimpleNamespace(repository="/r"))
    errand: Any = SimpleNamespace(request=request, app=SimpleNamespace(config=config), repo=desk_)
    return PipelineRunner._order(errand, None).attempts


def briefed(config: Config) -> object:
    """The conventions that a brief names."""
    from bailiwick.cli.pipelines.service import PipelineRunner

    told: list[object] = []

    async def files(_commit: str) -> tuple[str, ...]:
        return ("AGENTS.md", "HOUSE.md")

    request = SimpleNamespace(tell=told.append)
    desk_ = SimpleNamespace(git_store=SimpleNamespace(files=files))
    ground: Any = SimpleNamespace(commit="c")
    errand: Any = SimpleNamespace(request=request, app=SimpleNamespace(config=config), repo=desk_)
    asyncio.run(PipelineRunner._conventions(errand, ground))
    return told


def notes(config: Config) -> object:
    """How many tokens of notes a brief asks for; none where it asks for none."""
    from bailiwick.pipelines.briefing import notes_about

    asked: list[int] = []

    async def brief(_task: str, _scope: object, tokens: int) -> object:
        asked.append(tokens)
        return SimpleNamespace(notes=(), text="")

    opened = SimpleNamespace(brief=brief, close=lambda: None)
    with swapped("bailiwick.brain.service", "Brain", SimpleNamespace(open=lambda *_: opened)):
        asyncio.run(notes_about("task", Path("/r"), config, CLOCK, lambda _line: None))
    return asked


def served_roots(config: Config) -> object:
    """Where the skills of the service may work."""
    from bailiwick.cli.commands import serve as cli

    own: Any = SimpleNamespace(config=config, skills=None)
    wanted: Any = SimpleNamespace(concurrency=1, limits=SimpleNamespace(body=1))
    seen: list[object] = []
    with (
        swapped("bailiwick.service.offering", "skill_answerer", lambda _skills, roots: seen.append(roots)),
        swapped("bailiwick.service.offering", "make_offer", lambda *_: None),
        swapped("bailiwick.service.mcp", "http_part", lambda *_, **__: None),
    ):
        cli._parts(own, wanted)
    return seen


def session(config: Config) -> object:
    """What runs are run with; the configuration is found again by its home."""
    from bailiwick.app.service import open_app

    async def opened() -> object:
        async with open_app() as found:
            return found.runtime.daily, found.runtime.zone

    return asyncio.run(opened())


FORGE = {"forges": {"mine": {"type": "gitea", "url": "https://forge.example"}}}
CLAUDE = {"credentials": {"mine": {"backend": "claude", "billing": "metered", "token": "${secret:env:HOME}"}}}
MODEL = {"endpoints": {"mine": {"url": "http://127.0.0.1:9"}}}
KNOBS: dict[str, Json] = {
    "max_output_retries": 7, "max_invoke_retries": 9, "invoke_backoff_base": "1s", "invoke_backoff_cap": "2s",
    "max_compact_attempts": 5, "max_rephrase_attempts": 8, "use_default_outputs": False, "result_timeout": "5m",
    "silence_timeout": "4m", "cap_default_wait": "3m", "cap_wait_margin": "1m", "max_cap_waits": 3,
    "cap_max_wait": "1d",
    "max_attempts": 2, "outage_wait": "1h", "command": "tool", "allowed_backends": ["codex"], "allowed_models": ["m"],
}  # fmt: skip

PROBES: tuple[Probe, ...] = (
    Probe("backend", "codex", agents),
    Probe("model", "opus", agents),
    Probe("base", "develop", proposals),
    Probe("runs_dir", "elsewhere", folders),
    Probe("models_file", "my.yaml", folders),
    Probe("sessions_dir", "elsewhere", folders),
    Probe("skills_dir", "elsewhere", folders),
    Probe("brain_dir", "elsewhere", brain),
    Probe("brain.ingest_url", "http://127.0.0.1:1/notes", brain),
    Probe("time.zone", "Asia/Tokyo", session),
    *(Probe(f"power.*.{name}", "m", tier) for name in ("high", "medium", "low")),
    Probe("features.skills", False, skills),
    Probe("features.brain", False, brain),
    Probe("features.proposals", False, repo),
    Probe("features.service", False, features),
    Probe("features.mcp", False, features),
    *(Probe(f"budget.run.{unit}", 3, run_limits) for unit in ("usd", "tokens", "agent_calls", "wall")),
    *(Probe(f"budget.day.{unit}", 3, session) for unit in ("usd", "tokens", "agent_calls")),
    Probe("budget.call.usd", 3, agents),
    Probe("budget.unknown_cost", "refuse", agents),
    Probe("night.agents", 5, places),
    Probe("night.max_open", 1, preflight),
    Probe("night.keep_awake", False, doctor),
    Probe("mcp.workflows", ["nightly"], clients),
    Probe("mcp.budget", 1, clients),
    Probe("credentials.*.backend", "codex", credential, CLAUDE),
    Probe("credentials.*.billing", "subscription", credential, CLAUDE),
    Probe("credentials.*.token", "${secret:env:NOT_SET_ANYWHERE}", credential, CLAUDE),
    Probe("credentials.*.reserve.five_hour", "30%", reserve, CLAUDE),
    Probe("credentials.*.reserve.week", "30%", reserve, CLAUDE),
    Probe("credentials.*.budget.usd", 3, purse, CLAUDE),
    Probe("credentials.*.budget.tokens", 3, purse, CLAUDE),
    *(Probe(f"agents.{name}", value, agents) for name, value in KNOBS.items()),
    Probe("sandbox.profile", "none", sandboxes),
    Probe("sandbox.mounts", ["/usr/share"], sandboxes),
    Probe("sandbox.disk", "1 GB", sandboxes),
    Probe("sandbox.files", 1000, sandboxes),
    Probe("sandbox.unattended_none", True, sandboxes, {"sandbox": {"profile": "none"}}),
    Probe("protected", ["billing/**"], protection),
    Probe("publish.mode", "never", proposals),
    Probe("publish.draft", False, proposals),
    Probe("publish.push_to", "fork", proposals, FORGE),
    Probe("publish.labels", ["bot"], proposals),
    Probe("commit.author", "Bot <bot@example.org>", proposals),
    Probe("commit.signoff", True, proposals),
    Probe("commit.sign", True, proposals),
    Probe("forges.*.type", "forgejo", proposals, FORGE),
    Probe("forges.*.url", "https://other.example", proposals, FORGE),
    Probe("forges.*.token", "${secret:env:NOT_SET_ANYWHERE}", proposals, FORGE),
    Probe("endpoints.*.url", "http://127.0.0.1:10", models, MODEL),
    Probe("endpoints.*.key", "${secret:env:NOT_SET_ANYWHERE}", models, MODEL),
    Probe("endpoints.*.cloud", True, models, MODEL),
    Probe("endpoints.*.concurrency", 7, models, MODEL),
    Probe("endpoints.*.free", True, upstream, MODEL),
    Probe("secrets.provider", "file", secrets),
    Probe("secrets.file", "secrets.yaml", secrets, {"secrets": {"provider": "file"}}),
    Probe("service.host", "127.0.0.2", service),
    Probe("service.port", 1, service),
    Probe("service.public_url", "https://bailiwick.example", service),
    Probe("network.proxy", "http://127.0.0.1:9", proposals, FORGE),
    Probe("network.no_proxy", "forge.example", proposals, {**FORGE, "network": {"proxy": "http://127.0.0.1:9"}}),
    Probe("network.ca_file", "ca.pem", proposals, FORGE),
    Probe("retention.min_free", "900 TB", sandbox),
    Probe("sandbox.allow", ["docs.example"], egress),
    Probe("attempts", 7, order),
    Probe("conventions", "HOUSE.md", briefed),
    Probe("brain.briefs", False, notes),
    Probe("brain.tokens", 7, notes),
    Probe("roots", ["/somewhere"], served_roots),
    Probe("agents.models.*.also", ["house/extra"], broker_rules),
    Probe("agents.answer_tokens", 4000, broker_rules),
)

HERE = "tests/unit/config/test_probes.py"
RUNS = "tests/acceptance/test_runs.py"
BROKERAGE = "tests/unit/agents/test_broker_access.py"
LOGIN = "test_a_login_that_the_agent_would_hold_itself_needs_the_operators_word"

ELSEWHERE: dict[str, Elsewhere] = {
    "agents.cap_tick": Elsewhere(f"{RUNS}::test_a_long_wait_says_that_it_waits", "AGENT_CAP_TICK_S"),
    "agents.allow_exposed_credentials": Elsewhere(f"{BROKERAGE}::{LOGIN}", "agents.allow_exposed_credentials"),
    "endpoints.*.num_ctx": Elsewhere(f"{HERE}::test_the_window_that_ollama_is_asked_for_is_a_setting", "num_ctx"),
    "version": Elsewhere(f"{HERE}::test_a_file_of_another_version_is_refused", "version"),
    "night.until": Elsewhere("tests/unit/runs/test_night.py::test_nothing_new_starts_once_the_night_is_over", "UNTIL"),
    **{
        f"retention.{name}": Elsewhere(f"tests/unit/runs/test_retention.py::test_{test}", f"RETENTION_{name.upper()}")
        for name, test in {
            "transcripts": "transcripts_of_runs_that_ended_go_first",
            "runs": "runs_go_when_their_time_is_over",
            "worktrees": "a_worktree_goes_only_after_its_proposal_ended",
            "environments": "environments_that_nobody_used_go",
            "max_disk": "the_oldest_runs_go_while_it_is_too_much",
        }.items()
    },
}
