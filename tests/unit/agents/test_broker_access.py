"""Which credential a turn uses, what of it the agent sees, and windows that are kept free."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from bailiwick.agents.broker_access import BrokerAccess
from bailiwick.agents.port import Capabilities, LimitSeen, Turn, Used
from bailiwick.clock import ManualClock
from bailiwick.config.service import load_config
from bailiwick.errors import NotReady
from bailiwick.journal.opening import opened_store
from bailiwick.journal.port import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
from pathlib import Path

KEY = "sk-ant-real-key-of-the-operator"


@dataclass
class NamedBackend:
    """A backend that is only asked for its name and what it can."""

    name: str
    capabilities: Capabilities


def _broker_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str = "") -> BrokerAccess:
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "config" / "config.yaml").write_text(config)
    (tmp_path / "state").mkdir(exist_ok=True)
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    return BrokerAccess(load_config(tmp_path, {}), ManualClock())


def _on_store(tmp_path: Path, scene: Callable[[Store], Awaitable[None]]) -> None:
    async def played() -> None:
        async with opened_store(tmp_path / "state", ManualClock()) as store:
            await scene(store)

    asyncio.run(played())


def _turn(tmp_path: Path) -> Turn:
    env = {"PATH": "/usr/bin", "ANTHROPIC_API_KEY": KEY, "AWS_REGION": "eu-west-1"}
    return Turn("key", "hello", None, tmp_path, env, max_usd=1.0)


def test_a_brokered_agent_never_sees_the_real_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets an address on loopback and a token for one turn; the key stays with us."""
    broker_access = _broker_access(tmp_path, monkeypatch)
    backend = NamedBackend("claude", Capabilities(credential="brokered"))

    async def context() -> None:
        access = await broker_access.open(backend, _turn(tmp_path), lambda: None)  # type: ignore[arg-type]
        try:
            assert access.grant is not None
            assert access.turn.base_url is not None
            assert access.turn.base_url.startswith("http://127.0.0.1:")
            assert KEY not in repr(access.turn)
            assert KEY not in "".join(access.turn.env.values())
            counted = access.facts([Used(input=5, output=5, usd=9.0)])
            assert counted, "what the agent says counts where the broker saw nothing"
        finally:
            broker_access.revoke(access)
            await broker_access.close()

    asyncio.run(context())


def test_a_strange_reset_keeps_a_window_no_longer_than_a_cap_may_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reserve of a window that never begins again would close the credential for good."""
    text = "credentials:\n  main: {backend: claude, reserve: {week: 30%}}\nagents: {cap_max_wait: 1h}\n"
    broker_access = _broker_access(tmp_path, monkeypatch, text)
    now = broker_access.clock.now()

    async def scene(store: Store) -> None:
        strange = LimitSeen(hit=False, window="week", used=0.9, resets_at=now + 20 * 86400)
        await broker_access.remember("main", [strange], store)
        assert await broker_access.kept_free("main", store) == 3600
        assert isinstance(broker_access.clock, ManualClock)
        broker_access.clock.advance(3601)
        assert await broker_access.kept_free("main", store) == 0

    _on_store(tmp_path, scene)


def test_a_window_used_up_to_its_reserve_starts_nothing_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's own share of a subscription is left to the person."""
    text = "credentials:\n  main: {backend: claude, billing: subscription, reserve: {five_hour: 30%}}\n"
    broker_access = _broker_access(tmp_path, monkeypatch, text)
    now = broker_access.clock.now()

    async def scene(store: Store) -> None:
        async def kept_free(used: float, resets_at: float) -> float:
            said = LimitSeen(hit=False, window="five_hour", used=used, resets_at=resets_at)
            await broker_access.remember("main", [said], store)
            return await broker_access.kept_free("main", store)

        assert await kept_free(0.6, now + 900) == 0
        assert await kept_free(0.75, now + 900) == 900
        assert await broker_access.kept_free("other", store) == 0
        assert await kept_free(0.75, now - 1) == 0, "the window has begun again"

    _on_store(tmp_path, scene)


def test_a_login_that_the_agent_would_hold_itself_needs_the_operators_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can't be brokered is exposed to the agent: nobody gets that by default."""
    backend = NamedBackend("claude", Capabilities(credential="brokered"))
    for name, value in (("CLAUDE_CODE_USE_BEDROCK", "1"), ("AWS_REGION", "eu-west-1")):
        monkeypatch.setenv(name, value)
    broker_access = _broker_access(tmp_path, monkeypatch)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(NotReady, match="out of the agent's reach"):
        asyncio.run(broker_access.open(backend, _turn(tmp_path), lambda: None))  # type: ignore[arg-type]
    allowed = BrokerAccess(load_config(tmp_path, {"agents.allow_exposed_credentials": True}), ManualClock())
    access = asyncio.run(allowed.open(backend, _turn(tmp_path), lambda: None))  # type: ignore[arg-type]
    assert access.grant is None


def test_a_configured_endpoint_goes_before_the_vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for the vendor must not send what was meant for a server of one's own to the vendor."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-key-for-the-vendor")
    monkeypatch.setenv("LOCAL_KEY", "sk-made-up-key-of-our-own-server")
    text = "endpoints:\n  openai: {url: 'http://127.0.0.1:9/v1', key: '${secret:env:LOCAL_KEY}'}\n"
    broker_access = _broker_access(tmp_path, monkeypatch, text)
    assert broker_access.credential("openai").token == "sk-made-up-key-of-our-own-server"
    assert broker_access.credential("openai").name.endswith("127.0.0.1:9/v1")


def test_the_persons_own_login_is_not_used_without_their_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CLI that is logged in as its user would spend and refresh that login; a gateway is another matter."""
    backend = NamedBackend("claude", Capabilities(credential="brokered"))
    broker_access = _broker_access(tmp_path, monkeypatch)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    bare = replace(_turn(tmp_path), env={"PATH": "/usr/bin"})
    with pytest.raises(NotReady, match="no credential"):
        asyncio.run(broker_access.open(backend, bare, lambda: None))  # type: ignore[arg-type]
    gateway = replace(bare, env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    assert asyncio.run(broker_access.open(backend, gateway, lambda: None)).grant is None  # type: ignore[arg-type]
    allowed = BrokerAccess(load_config(tmp_path, {"agents.allow_exposed_credentials": True}), ManualClock())
    assert asyncio.run(allowed.open(backend, bare, lambda: None)).turn == bare  # type: ignore[arg-type]


@pytest.mark.parametrize(("word", "is_asked"), [("allow", True), ("estimate", False), ("refuse", False)])
def test_a_turn_is_given_its_models_and_the_persons_word_on_unknown_prices(
    word: str, is_asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the configuration says about models and prices is what the broker goes by."""
    text = "agents: {models: {claude: {also: [house/extra]}}, answer_tokens: 4000}\n"
    text += f"budget: {{unknown_cost: {word}}}\n"
    broker_access = _broker_access(tmp_path, monkeypatch, text)
    backend = NamedBackend("claude", Capabilities(credential="brokered", default_model="sonnet"))

    async def context() -> None:
        access = await broker_access.open(backend, _turn(tmp_path), lambda: None)  # type: ignore[arg-type]
        try:
            assert access.grant is not None
            rules = access.grant.rules
            assert rules.models is not None
            assert [rules.models.allows(m) for m in ("claude-sonnet-5", "house/extra", "claude-opus-5")] == [
                True,
                True,
                False,
            ]
            assert (rules.unpriced, rules.answer_tokens) == (is_asked, 4000)
        finally:
            broker_access.revoke(access)
            await broker_access.close()

    asyncio.run(context())
