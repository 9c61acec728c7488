"""Where a local model answers, under which name, and whether that leaves the house."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bailiwick.agents.backends.openai import OpenaiBackend
from bailiwick.agents.port import AgentEvent, Answered
from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import Json
from bailiwick.routing.endpoints import Endpoints, in_house
from bailiwick.testing.model_server.server import ModelRequestSeen
from tests.model_places import FAULTS, ModelPlaces, Stub, faulty
from tests.unit.agents.asking import ask, turn
from tests.unit.config.places import ConfigLayers

PROXY = {"url": "http://127.0.0.1:4000"}
SWAP = {"url": "http://koala:8080/v1"}
AFAR = {"url": "https://api.example.com/v1"}


def goes(model: str, **entries: Json) -> tuple[str, str, str]:
    """The endpoint, its kind and the name that is sent for a model."""
    place = Endpoints({name.replace("_", "-"): entry for name, entry in entries.items()}).place(model)
    return place.endpoint, place.kind, place.name_to_send


def test_litellm_gets_the_whole_name() -> None:
    """The proxy's own table is made of such names."""
    assert goes("ollama/phi4", litellm=PROXY, ollama={"url": "http://h:1"}, llama_swap=SWAP) == (
        "litellm",
        "litellm",
        "ollama/phi4",
    )


def test_without_any_endpoint_ollama_on_this_machine_is_asked_without_the_prefix() -> None:
    """The prefix is LiteLLM's; Ollama does not know it."""
    place = Endpoints().place("ollama/phi4:14b")
    assert (place.url, place.kind, place.name_to_send) == ("http://localhost:11434", "ollama", "phi4:14b")
    assert (place.concurrency, place.token, place.cloud) == (1, None, False)
    assert Endpoints().place("hf.co/x/y:Q4").name_to_send == "hf.co/x/y:Q4"


def test_a_configured_endpoint_goes_before_ollama() -> None:
    """The order of the contract: LiteLLM, a configured endpoint, Ollama."""
    assert goes("ollama/phi4", llama_swap=SWAP) == ("llama-swap", "endpoint", "phi4")
    assert goes("phi4", llama_swap=SWAP, ollama={"url": "http://h:1"}) == ("llama-swap", "endpoint", "phi4")


def test_a_prefix_that_names_a_configured_endpoint_chooses_it() -> None:
    """Who has two machines says which."""
    assert goes("ollama/phi4", llama_swap=SWAP, ollama={"url": "http://h:1"}) == ("ollama", "ollama", "phi4")
    assert goes("big/phi4", big={"url": "http://big:1"}, llama_swap=SWAP) == ("big", "endpoint", "phi4")


def test_a_model_of_ollama_never_goes_to_a_vendor_by_the_way() -> None:
    """An endpoint that was configured for agents must not be sent what was meant for this machine."""
    assert goes("ollama/phi4", openai=AFAR) == ("ollama", "ollama", "phi4")
    assert goes("phi4", openai=AFAR, zoo={"url": "http://zoo:1"}) == ("zoo", "endpoint", "phi4")
    assert goes("phi4", openai=AFAR) == ("openai", "endpoint", "phi4")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:7000", "http://127.0.0.1:7000"),
        ("box", "http://box:11434"),
        ("http://box", "http://box"),
        ("https://box:1/sub/", "https://box:1/sub"),
    ],
)
def test_ollamas_variable_is_read_as_ollama_reads_it(given: str, url: str) -> None:
    """It also says where the server listens, so it is often no address that can be called."""
    assert Endpoints({"ollama": {"url": given}}).place("m").url == url


def test_the_variables_of_the_contract_reach_the_endpoints(tmp_path: Path) -> None:
    """LITELLM_BASE_URL and LITELLM_API_KEY are how the proxy is set everywhere."""
    world = ConfigLayers(
        tmp_path, {"LITELLM_BASE_URL": "http://127.0.0.1:4000", "LITELLM_API_KEY": "sk-1", "OLLAMA_HOST": "b"}
    )
    place = Endpoints.of(world.load(), world.environment()).place("ollama/m")
    assert (place.url, place.token, place.key) == ("http://127.0.0.1:4000", "sk-1", "127.0.0.1:4000")
    assert "sk-1" not in repr(place)
    assert Endpoints.of(world.load(), world.environment()).at("ollama").token is None


def test_a_configured_key_goes_before_the_variable_and_is_looked_up_late(tmp_path: Path) -> None:
    """A missing secret is told when its endpoint is asked for, with what to do."""
    world = ConfigLayers(tmp_path, {"LITELLM_API_KEY": "sk-variable"})
    world.write_person("endpoints: {litellm: {url: 'http://h:1', key: '${secret:env:MY_KEY}', concurrency: 3}}\n")
    endpoints = Endpoints.of(world.load(), world.environment())
    with pytest.raises(NotReady):
        endpoints.place("m")
    world.variables["MY_KEY"] = "sk-mine"
    place = Endpoints.of(world.load(), world.environment()).place("m")
    assert (place.token, place.concurrency) == ("sk-mine", 3)


def test_one_server_has_one_identity(tmp_path: Path) -> None:
    """Its slots and its cool-down are shared, however it is written; a password is no part of it."""
    urls = ("http://localhost:80", "http://127.0.0.1", "http://127.0.0.1:80/v1/", "http://u:secret@localhost/v1")
    assert {Endpoints({"x": {"url": url}}).place("x/m").key for url in urls} == {"127.0.0.1:80"}


def test_a_vendors_endpoint_takes_more_calls_and_the_proxy(tmp_path: Path) -> None:
    """One call at a time protects one's own machine; the proxy is for what is outside."""
    world = ConfigLayers(tmp_path)
    world.write_person(
        "endpoints: {far: {url: 'https://api.example.com'}, near: {url: 'http://10.0.0.7:1'}}\n"
        "network: {proxy: 'http://proxy:3128', no_proxy: 'example.org'}\n"
    )
    endpoints = Endpoints.of(world.load(), world.environment())
    far, near = endpoints.at("far"), endpoints.at("near")
    assert (far.concurrency, far.cloud, far.reach.proxy) == (4, True, "http://proxy:3128")
    assert (near.concurrency, near.cloud, near.reach.proxy) == (1, False, None)
    assert endpoints.names() == ["near", "far"]


@pytest.mark.parametrize("url", ["http://h:99999", "ftp://h", "http://"])
def test_an_address_that_is_none_is_refused_by_its_key(url: str) -> None:
    """The person has to find it again."""
    with pytest.raises(UsageError) as caught:
        Endpoints({"box": {"url": url}}).place("box/m")
    assert "endpoints.box.url" in caught.value.what


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("localhost", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[fe80::1%eth0]", True),
        ("fd00::5", True),
        ("10.1.2.3", True),
        ("172.16.0.1", True),
        ("172.32.0.1", False),
        ("192.168.1.1", True),
        ("100.100.1.1", True),
        ("koala", True),
        ("koala.local", True),
        ("host.docker.internal", True),
        ("nas.home.arpa.", True),
        ("8.8.8.8", False),
        ("::ffff:8.8.8.8", False),
        ("::ffff:10.0.0.1", True),
        ("2001:db8::1", False),
        ("api.openai.com", False),
        ("localhost.example.com", False),
        ("127.0.0.1.nip.io", False),
        ("134744072", False),
        ("0x08080808", False),
        ("", False),
    ],
)
def test_the_house_is_told_by_the_address_alone(host: str, inside: bool) -> None:
    """A look-up could be answered by anybody; and what can't be told counts as outside."""
    assert in_house(host) is inside


@pytest.mark.parametrize(
    ("model", "entries", "cloud"),
    [
        ("ollama/phi4", {}, False),
        ("ollama/phi4", {"litellm": PROXY}, False),
        ("openai/gpt-4o", {"litellm": PROXY}, True),
        ("my-alias", {"litellm": PROXY}, True),
        ("my-alias", {"litellm": {**PROXY, "cloud": False}}, False),
        ("ollama/phi4", {"litellm": {"url": "https://llm.example.com"}}, True),
        ("ollama/phi4", {"litellm": {**PROXY, "cloud": True}}, True),
        ("gpt-oss:120b-cloud", {}, True),
        ("ollama/glm-4.6:cloud", {"litellm": {**PROXY, "cloud": False}}, True),
        ("m", {"far": AFAR}, True),
        ("m", {"far": {**AFAR, "cloud": False}}, False),
    ],
)
def test_what_may_leave_the_house_counts_as_cloud(model: str, entries: dict[str, Json], cloud: bool) -> None:
    """A proxy on this machine may pass a question on; a name that is not known to stay counts as leaving."""
    endpoints = Endpoints(entries)
    assert endpoints.is_cloud(model) is cloud
    assert endpoints.place(model).cloud is cloud


def tell(kind: str, stub: Stub, silence: float = 20.0) -> tuple[AgentEvent, list[ModelRequestSeen]]:
    """Give a task to a model at a stub of one kind; how that ended, and what was asked."""

    async def go() -> tuple[AgentEvent, list[ModelRequestSeen]]:
        async with ModelPlaces({"stub": stub}) as places:
            place = Endpoints({kind: {"url": places.url("stub")}}, lambda _name: "sk-1").place("ollama/phi4")
            asked = turn(model=place.name_to_send, options={"silence": silence, "total": 30})
            events = await ask(OpenaiBackend(place.reach), asked)
            return events[-1], places.requests

    return asyncio.run(go())


@pytest.mark.parametrize(("kind", "sent"), [("litellm", "ollama/phi4"), ("llama-swap", "phi4"), ("ollama", "phi4")])
def test_a_task_reaches_the_model_at_its_place(kind: str, sent: str) -> None:
    """The address, the name and the key of a place are all that a call needs."""
    ended, (seen,) = tell(kind, Stub())
    assert ended == Answered("Hello from the script.", stop="stop")
    assert (seen.path, seen.body["model"]) == ("/v1/chat/completions", sent)
    assert seen.headers["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_no_fault_of_a_place_looks_like_an_answer(fault: str) -> None:
    """Whatever a place does wrong has to lead to the next tier."""
    ended, _ = tell("ollama", faulty(fault), silence=0.5)
    assert not isinstance(ended, Answered)
