"""Whether a model is in memory: told by whoever knows, in time or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from bailiwick.clock import SystemClock
from bailiwick.routing.endpoints import EndpointAddress, Endpoints
from bailiwick.routing.warm import is_warm, loaded_models
from tests.model_places import FAULTS, ModelPlaces, Stub, faulty, refused

OLLAMA = Stub(loaded=("phi4:latest", "qwen3:30b"))
SWAP = Stub(loaded=("devstral",), loading=("gemma",))


def place(kind: str, url: str, model: str = "") -> EndpointAddress:
    """An endpoint of one kind for a model."""
    return Endpoints({kind: {"url": url}}).place(model)


def ask(stubs: Mapping[str, Stub], kind: str, model: str, swap: str = "") -> tuple[bool, list[str]]:
    """Whether a model is warm at the stub named like its kind; `swap` names a stub beside it. And what was asked."""

    async def go() -> tuple[bool, list[str]]:
        async with ModelPlaces(stubs) as places:
            at = place(kind, places.url(kind), model)
            with pytest.MonkeyPatch.context() as patch:  # what is told is looked at here, not how fast
                patch.setattr("bailiwick.routing.warm.PROBE_SECONDS", 20.0)
                warm = await is_warm(at, model, places.url(swap) if swap else "")
            return warm, sorted(f"{seen.scenario}{seen.path}" for seen in places.requests)

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("model", "warm"),
    [("ollama/phi4", True), ("phi4:latest", True), ("ollama/qwen3:30b", True), ("ollama/qwen3", False), ("phi", False)],
)
def test_ollama_tells_what_it_has_loaded(model: str, warm: bool) -> None:
    """A name without a tag means the latest; another tag is another model."""
    assert ask({"ollama": OLLAMA}, "ollama", model) == (warm, ["ollama/api/ps"])


@pytest.mark.parametrize(("model", "warm"), [("ollama/devstral", True), ("devstral", True), ("gemma", False)])
def test_llama_swap_tells_what_runs_and_one_that_starts_is_not_ready(model: str, warm: bool) -> None:
    """A model that is being loaded makes a call wait as a cold one does."""
    assert ask({"llama-swap": SWAP}, "llama-swap", model) == (warm, ["llama-swap/running"])


LLAMA = "llamacpp"


@pytest.mark.parametrize(
    ("stub", "model", "warm"),
    [
        (Stub(models=("/models/q.gguf",), owner=LLAMA), "coder", True),
        (Stub(models=("a", "b"), loaded=("a",), owner=LLAMA, states=True), "a", True),
        (Stub(models=("a", "b"), loaded=("a",), owner=LLAMA, states=True), "b", False),
        (Stub(models=("a",), owner=LLAMA, states=True), "a", False),
        (Stub(models=("a",), owner="vllm"), "a", True),
        (Stub(models=("a",), owner="vllm"), "b", False),
        (Stub(models=("a",), owner="openai"), "a", False),
        (Stub(models=("a",)), "a", False),
    ],
)
def test_a_server_that_loads_what_it_lists_is_warm(stub: Stub, model: str, warm: bool) -> None:
    """llama-server with one model has it in memory whatever name it is asked for; with several it tells of each."""
    assert ask({"openai": stub}, "openai", model) == (warm, ["openai/v1/models"])


@pytest.mark.parametrize(
    ("model", "warm"), [("ollama/phi4", True), ("ollama_chat/qwen3:30b", True), ("ollama/x", False)]
)
def test_behind_litellm_ollama_itself_is_asked(model: str, warm: bool) -> None:
    """The name says where the proxy passes it on to; without this every call counts as a cold start."""

    async def go() -> tuple[bool, list[str]]:
        async with ModelPlaces({"litellm": Stub(), "ollama": OLLAMA}) as places:
            entries = {name: {"url": places.url(name)} for name in ("litellm", "ollama")}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("bailiwick.routing.warm.PROBE_SECONDS", 20.0)
                found = await is_warm(Endpoints(entries).place(model), model)
            return found, [f"{seen.scenario}{seen.path}" for seen in places.requests]

    assert asyncio.run(go()) == (warm, ["ollama/api/ps"])


def test_behind_a_proxy_the_llama_swap_of_the_file_is_asked() -> None:
    """LiteLLM itself does not know what is loaded."""
    stubs = {"litellm": Stub(), "swap": SWAP}
    assert ask(stubs, "litellm", "devstral", "swap") == (True, ["swap/running"])
    assert ask(stubs, "litellm", "devstral") == (False, [])


def test_whoever_knows_of_the_model_is_believed() -> None:
    """A file may name a llama-swap while Ollama is asked directly: either may have the model."""
    stubs = {"ollama": OLLAMA, "swap": SWAP}
    for model in ("ollama/phi4", "ollama/devstral"):
        assert ask(stubs, "ollama", model, "swap") == (True, ["ollama/api/ps", "swap/running"])


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_place_that_fails_is_not_warm_and_costs_no_more_than_its_time(fault: str) -> None:
    """A probe runs beside the work: it may neither raise nor hold it up."""

    async def go() -> tuple[bool, float]:
        async with ModelPlaces({"ollama": faulty(fault), "swap": faulty(fault)}) as places:
            at, swap = place("ollama", places.url("ollama"), "phi4"), places.url("swap")
            await is_warm(at, "phi4", swap)  # what is imported and started only once is not the probe's time
            clock = SystemClock()
            began = clock.monotonic()
            return await is_warm(at, "phi4", swap), clock.monotonic() - began

    warm, took = asyncio.run(go())
    assert not warm
    assert took < 20.0, "some faults last for ever: 200 ms, and what a busy machine adds"


def test_a_place_that_nobody_listens_at_is_not_warm() -> None:
    """The most usual fault: the server is not running."""
    with refused() as url:
        assert not asyncio.run(is_warm(place("ollama", url, "m"), "m", url))


@pytest.mark.parametrize("url", ["nowhere at all", "http://", "http://127.0.0.1:1/\n", "ftp://h"])
def test_an_address_that_is_none_is_not_warm(url: str) -> None:
    """The llama-swap of a file is only a hint; a bad one must not break a call."""
    assert not asyncio.run(is_warm(Endpoints({"litellm": {"url": "http://h:1"}}).place("m"), "m", url))


def test_every_loaded_model_is_told_once() -> None:
    """The list of tiers shows them."""

    async def go() -> list[str]:
        async with ModelPlaces({"ollama": OLLAMA, "swap": Stub(loaded=("qwen3:30b", "x"))}) as places:
            return await loaded_models(place("ollama", places.url("ollama")), places.url("swap"), 5.0)

    assert asyncio.run(go()) == ["phi4:latest", "qwen3:30b", "x"]
