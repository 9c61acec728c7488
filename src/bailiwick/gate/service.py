"""Runs a gate: a fresh tree, every check in a sandbox without network, one report that is kept and audited."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NotRequired, TypedDict, Unpack

from bailiwick import crashpoints
from bailiwick.clock import Clock
from bailiwick.egress.upstream_proxy import UpstreamProxy
from bailiwick.environments.prepared import (
    EnvironmentBuilder,
    EnvironmentFailed,
    PreparedEnvironment,
    Recipe,
    prepare_environment,
)
from bailiwick.environments.registries import Registries
from bailiwick.errors import BailiwickError
from bailiwick.gate import base_cache as kept
from bailiwick.gate.backends import find_check
from bailiwick.gate.backends.pytest import PytestCheck
from bailiwick.gate.backends.weakening import find_weakening
from bailiwick.gate.check_trees import Trees
from bailiwick.gate.doubts import (
    DECIDED_LATER,
    DiffReader,
    approved,
    doubts_of,
    only_read_by_tests,
    weigh_values,
    without_measurements,
)
from bailiwick.gate.model import CheckResult, Finding, GateReport, Verdict
from bailiwick.gate.optional import excuse
from bailiwick.gate.outcomes import PytestSession
from bailiwick.gate.port import CheckContext, Judge, Judging
from bailiwick.gate.reading import read_versions
from bailiwick.gate.report import line_of, store_report, without_tool
from bailiwick.gate.run import (
    about_wanted_tests,
    own_tools,
    proof_of,
    requested,
    settled,
    taken_findings,
    verdict_of,
    wanted_paths,
)
from bailiwick.gate.services import UNPROTECTED, ServiceContainers, open_services
from bailiwick.gate.spec import CheckSpec, GateSpec
from bailiwick.gate.tree import ProposedTree, TreePolicy, sift
from bailiwick.git.store import GitStore
from bailiwick.ids import canonical, digest
from bailiwick.sandbox.service import Sandboxes
from bailiwick.terminal.output import duration

INTERRUPTED = 130
PYTEST = "pytest"


@dataclass(frozen=True, slots=True)
class GateRequest:
    """A tree to be checked against a base commit. `allow`: patterns of protected paths that a person lets through.

    `known_red`: tests (or checks) that may stay red. `wanted` and `reason`: what the agent says it has to change.
    `issue`: what was asked of the author; `authors`: the models that wrote the change, where they are known.
    """

    base: str
    tree: str
    allow: tuple[str, ...] = ()
    known_red: tuple[str, ...] = ()
    title: str = ""
    wanted: tuple[str, ...] = ()
    reason: str = ""
    issue: str = ""
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GatePlaces:
    """Where things are kept, and where packages come from while an environment is made.

    `person` is the work tree that ignored files are brought from; the repository's own where it is not given. `engine`
    are the variables that say where the engine of containers is; the operator's where not given.
    """

    cache: Path
    state: Path
    person: Path | None = None
    registries: Registries = field(default_factory=Registries)
    parent: UpstreamProxy = field(default_factory=UpstreamProxy)
    policy: str = ""
    """The digest of the organisation's policy and of all limits that hold."""
    engine: Mapping[str, str] | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of configured secrets, none of which may be in a change."""
    judge: Judge | None = None
    """Who asks the models of checks that are an opinion; None where nobody can."""


class GateOptions(TypedDict):
    """How a gate is run: what ends it, where its progress is shown, which clock it goes by.

    `prepared` is the environment for the base where somebody has prepared it already, or why that failed.
    """

    cancel: asyncio.Event
    show: Callable[[str], None]
    clock: Clock
    prepared: NotRequired[PreparedEnvironment | EnvironmentFailed]


class GateInterrupted(BailiwickError):
    """Run the gate again: it was ended before it was done, and nothing of it is kept."""

    exit_code = INTERRUPTED
    default_code = "BW451"


async def run_gate(
    ask: GateRequest,
    spec: GateSpec,
    git_store: GitStore,
    sandboxes: Sandboxes,
    places: GatePlaces,
    **how: Unpack[GateOptions],
) -> GateReport:
    """Check a tree; the report is stored and audited before it is given. Raises `GateInterrupted` when cancelled.

    Never raises for what a check finds, nor for a failing environment: that is a verdict of its own.
    """
    began = how["clock"].monotonic()
    builder = environment_builder(git_store, sandboxes, places, **how)
    prepared = how.get("prepared") or await try_prepare(spec, ask.base, builder)
    services = () if isinstance(prepared, EnvironmentFailed) else spec.services
    means = ServiceContainers(how["cancel"], how["show"], places.engine)
    async with open_services(services, sandboxes, means) as (reaching, failed):
        work = await _open(
            ask, spec, builder=replace(builder, sandboxes=reaching), places=places, ready=(prepared, failed)
        )
        try:
            report = await work.report()
            crashpoints.reach("gate.checked")
        finally:
            await work.close()
    if how["cancel"].is_set():
        raise GateInterrupted("the gate was interrupted", hint="run it again; nothing was kept")
    rules = digest(canonical([report.policy, places.policy]))
    report = replace(report, policy=rules, seconds=how["clock"].monotonic() - began)
    _record(report, ask, places.state, how["clock"])
    crashpoints.reach("gate.recorded")
    return report


async def base_report(
    base: str, spec: GateSpec, git_store: GitStore, sandboxes: Sandboxes, places: GatePlaces, **how: Unpack[GateOptions]
) -> GateReport:
    """The gate of the base itself, from what is kept if nothing has changed.

    A fault of the environment is not kept, nor that a tool is not here: both are repaired without a change.
    """
    tree = await git_store.tree_of(base)
    prepared = how.get("prepared") or await try_prepare(
        spec, base, environment_builder(git_store, sandboxes, places, **how)
    )
    how["prepared"] = prepared
    key = ""
    if isinstance(prepared, PreparedEnvironment):
        key = kept.key_of(tree, spec.digest, prepared.digest, sandboxes.sandbox.name)
    known = kept.read_base_report(places.cache, key) if key else None
    if known is not None:
        return known
    report = await run_gate(
        GateRequest(base, tree), spec, git_store=git_store, sandboxes=sandboxes, places=places, **how
    )
    if key and report.verdict in ("green", "red") and not without_tool(report):
        kept.keep_base_report(places.cache, key, report)
    return report


async def try_prepare(
    spec: GateSpec, base: str, builder: EnvironmentBuilder
) -> PreparedEnvironment | EnvironmentFailed:
    """The environment for work on a base, or why there is none: that is a finding, and no reason to stop."""
    try:
        return await prepare_environment(Recipe(spec.prepare, spec.copy), base, builder)
    except EnvironmentFailed as error:
        return error


def environment_builder(
    git_store: GitStore, sandboxes: Sandboxes, places: GatePlaces, **how: Unpack[GateOptions]
) -> EnvironmentBuilder:
    """What environments are made with, for this gate and for agents that work on the same base."""
    return EnvironmentBuilder(
        git_store=git_store,
        sandboxes=sandboxes,
        cache=places.cache,
        person=places.person or git_store.repository,
        clock=how["clock"],
        registries=places.registries,
        parent=places.parent,
        cancel=how["cancel"],
        show=how["show"],
    )


def _record(report: GateReport, ask: GateRequest, state: Path, clock: Clock) -> None:
    from bailiwick.audit.service import append

    name = store_report(state, report)
    told = {
        "report": name,
        "verdict": report.verdict,
        "base": report.base,
        "tree": report.tree,
        "asked": report.asked,
        "policy": report.policy,
        "environment": report.environment,
        "title": ask.title[:200],
        "allow": list(ask.allow),
    }
    append(state, "gate.report", told, actor="bailiwick", clock=clock)


@dataclass(frozen=True, slots=True)
class BaseFacts:
    """Which files of the base hold tests, and which say what tests expect."""

    test_files: frozenset[str] = frozenset()
    expectations: frozenset[str] = frozenset()
    doctest_files: frozenset[str] = frozenset()
    opened: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Files that tests or what they run opened, each with the files that did."""

    def joined(self, session: PytestSession) -> BaseFacts:
        """The same with what one more run of tests shows."""
        expected = only_read_by_tests(session.evidence.opened.items(), session.test_files)
        examples = frozenset(item.path for item in session.items if not item.code_path)
        return BaseFacts(
            test_files=self.test_files | session.test_files,
            expectations=self.expectations | expected | session.evidence.settings,
            doctest_files=self.doctest_files | examples,
            opened={**self.opened, **session.evidence.opened},
        )


@dataclass(slots=True)
class _Gate:
    """One gate at work."""

    ask: GateRequest
    spec: GateSpec
    builder: EnvironmentBuilder
    trees: Trees
    sifted: ProposedTree
    trouble: tuple[CheckResult, ...]
    key: str
    slots: asyncio.Semaphore
    base: BaseFacts
    places: GatePlaces
    known: tuple[Finding, ...] = ()
    """What reading the change has shown."""

    async def report(self) -> GateReport:
        """Run everything, and say what follows from it."""
        ask, sifted = self.ask, self.sifted
        standing = await self.builder.sandboxes.look()
        blank = GateReport(
            verdict="environment",
            tree=sifted.tree,
            base=ask.base,
            asked=ask.tree,
            policy=self.spec.digest,
            environment=self.trees.environment.digest,
            sandbox=self.builder.sandboxes.sandbox.name,
            checks=self.trouble,
            taken=sifted.taken,
            weakening=taken_findings(await self._weakening(), sifted.taken),
            unprotected=(*standing.unprotected, *((UNPROTECTED,) if self.spec.services else ())),
            findings=sifted.findings,
            reason=ask.reason[:2000],
        )
        return blank if self.trouble else await self._judged(blank)

    async def _judged(self, blank: GateReport) -> GateReport:
        """The report with what reading and running the change show."""
        ask, sifted, git_store = self.ask, self.sifted, self.builder.git_store
        self.known = await self._read()
        parked = any(f.parks and f.code not in DECIDED_LATER for f in approved(self.known, ask.allow))
        granted = tuple(t.path for t in sifted.taken if t.allowed)
        measured = await self._checks(sifted.tree, granted, brief=parked)
        without = await self._checks(sifted.without, brief=parked) if sifted.without else ()
        read = weigh_values(self.known, measured)
        ran = tuple(map(without_measurements, measured))
        checks = tuple(replace(check, findings=approved(check.findings, ask.allow)) for check in ran)
        verdict, wanted = await self._verdict(checks, (*blank.weakening, *read))
        raised = (*read, *(finding for check in ran for finding in check.findings))
        doubts = await doubts_of(approved(raised, ask.allow), git_store, ask.base, sifted.tree)
        if doubts and verdict == "green":
            verdict = "needs_person"
        elif verdict == "green":  # those that a person allowed are shown first
            doubts = await doubts_of(raised, git_store, ask.base, sifted.tree)
        if doubts and verdict == "needs_person":
            wanted = tuple(dict.fromkeys((*wanted, *(doubt.path for doubt in doubts))))
        shown = proof_of(checks, changed=ask.tree != await git_store.tree_of(ask.base))
        return replace(
            blank,
            verdict=verdict,
            checks=checks,
            without=tuple(map(without_measurements, without)),
            wanted=wanted,
            doubts=doubts,
            findings=(*blank.findings, *approved(read, ask.allow)),
            **asdict(shown),
        )

    async def _read(self) -> tuple[Finding, ...]:
        """What reading the change shows, before anything runs."""
        reader = DiffReader(
            git_store=self.builder.git_store,
            base=self.ask.base,
            tree=self.sifted.tree,
            changes=self.sifted.changes,
            test_files=self.base.test_files,
            doctest_files=self.base.doctest_files,
            opened=self.base.opened,
            secrets=self.places.secrets,
        )
        return await reader.findings()

    async def _verdict(
        self, checks: tuple[CheckResult, ...], read: tuple[Finding, ...]
    ) -> tuple[Verdict, tuple[str, ...]]:
        """The verdict, and the paths that a person would have to allow."""
        out = self.sifted.out
        verdict = verdict_of(checks, self.ask.known_red)
        if verdict != "environment" and any(finding.blocks for finding in read):
            verdict = "red"
        asked_for = requested(out, self.ask.wanted)
        if asked_for and verdict != "environment":
            return "needs_person", asked_for
        if verdict == "red" and about_wanted_tests(checks, out):
            wanted = wanted_paths(checks, out)
            self.builder.show("red only in tests that the agent wanted to change; re-running with its changes to them")
            tree = await self.builder.git_store.replace(self.sifted.tree, dict.fromkeys(wanted, self.ask.tree))
            if verdict_of(await self._checks(tree, allowed=wanted), self.ask.known_red) == "green":
                return "needs_person", wanted
        return verdict, ()

    async def _checks(
        self, tree: str, allowed: tuple[str, ...] = (), *, brief: bool = False
    ) -> tuple[CheckResult, ...]:
        """Every check on a tree, at once as far as the machine allows, all of them even if the first fails."""
        made = await self.trees.context(tree, allowed, brief=brief)
        known = tuple(line_of(finding) for finding in (*self.sifted.findings, *self.known))
        context = replace(made, judging=Judging(self.places.judge, self.ask.issue, self.ask.authors, known))
        ended = await asyncio.gather(*(self._check(spec, context) for spec in self.spec.checks), return_exceptions=True)
        for result in ended:
            if isinstance(result, BaseException):
                raise result
        return tuple(result for result in ended if isinstance(result, CheckResult))

    async def _check(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        async with self.slots:
            self.builder.show(f"{spec.name}: {' '.join(spec.run) or spec.kind}")
            try:
                result = excuse(spec, settled(await find_check(spec.kind).run(spec, context)))
            except (OSError, BailiwickError) as error:
                result = trouble(spec.name, error, kind=spec.kind)
        self.builder.show(f"{spec.name}: {result.outcome.replace('_', ' ')}, {duration(result.seconds)}")
        return result

    async def _weakening(self) -> tuple[Finding, ...]:
        """What in the asked tree weakens the checks."""
        git_store, ask = self.builder.git_store, self.ask
        changes = await git_store.changes(ask.base, ask.tree)
        text = [change for change in changes if change.added is not None]
        trees = {"base": ask.base, "proposed": ask.tree}
        old, new = await read_versions(lambda which, path: git_store.blob(trees[which], path), text)
        return await asyncio.to_thread(find_weakening, text, old.get, new.get)

    async def close(self) -> None:
        """Keep what was learnt about the base, and remove everything else."""
        if not self.builder.cancel.is_set():
            kept.keep_base_results(self.builder.cache, self.key, self.trees.base_results)
        await self.trees.close()


def trouble(name: str, error: OSError | BailiwickError, *, kind: str = "environment") -> CheckResult:
    """The result for something that could not be done, which says nothing about the change."""
    what = error.what if isinstance(error, BailiwickError) else f"{error.strerror or error}"
    return CheckResult(
        name=name,
        kind=kind,
        level="exit-code",
        outcome="environment",
        findings=(Finding("environment", what, blocks=False),),
        output=error.output if isinstance(error, EnvironmentFailed) else "",
        hint=error.hint if isinstance(error, BailiwickError) else "",
    )


async def _open(
    ask: GateRequest,
    spec: GateSpec,
    builder: EnvironmentBuilder,
    places: GatePlaces,
    ready: tuple[PreparedEnvironment | EnvironmentFailed, EnvironmentFailed | None],
) -> _Gate:
    """Make the proposed tree ready. What could not be prepared is kept for the report."""
    named = zip(("prepare", "services"), ready, strict=True)
    problems = [trouble(name, failed) for name, failed in named if isinstance(failed, EnvironmentFailed)]
    environment = ready[0] if isinstance(ready[0], PreparedEnvironment) else PreparedEnvironment("")
    key = kept.key_of(
        await builder.git_store.tree_of(ask.base), spec.digest, environment.digest, builder.sandboxes.sandbox.name
    )
    trees = Trees(
        builder=builder,
        base=ask.base,
        environment=environment,
        folder=builder.sandboxes.scratch / f"gate-{secrets.token_hex(6)}",
        base_results=kept.read_base_results(builder.cache, key),
    )
    try:
        facts = BaseFacts() if problems else await _base_facts(spec, trees, ask.base)
        files = frozenset(await builder.git_store.files(ask.base))
        policy = TreePolicy(
            protected=tuple(dict.fromkeys((*spec.protected, *own_tools(spec.checks, files)))),
            allow=ask.allow,
            installed=environment.modules,
            test_files=facts.test_files,
            expectations=facts.expectations,
        )
        sifted = await sift(builder.git_store, ask.base, ask.tree, policy)
    except BaseException:
        await trees.close()
        raise
    return _Gate(
        ask=ask,
        spec=spec,
        builder=builder,
        trees=trees,
        sifted=sifted,
        trouble=tuple(problems),
        key=key,
        slots=asyncio.Semaphore(max(1, os.cpu_count() or 1)),
        base=facts,
        places=places,
    )


async def _base_facts(spec: GateSpec, trees: Trees, base: str) -> BaseFacts:
    """What the base's own runs of tests show, each once for all gates on this base."""
    context = await trees.context(base)
    facts = BaseFacts()
    for check in spec.checks:
        if check.kind == PYTEST:
            with suppress(OSError, BailiwickError):  # the check itself tells what is wrong
                facts = facts.joined(await PytestCheck().base(check, context))
    return facts
