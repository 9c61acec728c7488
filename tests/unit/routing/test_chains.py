"""Which models a call goes through, and that `local_only` lets nothing out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.settings import AgentSettings
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.routing.chains import candidate_of, cli_name, compose
from bailiwick.routing.model import Candidate, Chain
from bailiwick.routing.models_file import Models, SkillModels

PLAIN = AgentSettings()
MODELS = Models(
    verifier="claude-sonnet-4-6",
    default_chain=("ollama/phi4", "claude-opus-4-6"),
    skills={"review": SkillModels(("ollama/devstral", "ollama/gemma4", "claude-sonnet-4-6"), line=9)},
    path=Path("/p/models.yaml"),
    default_line=4,
)


def names(chain: Chain) -> list[str]:
    """The models of a chain."""
    return [candidate.model for candidate in chain.candidates]


def refused(
    models: Models, model: str | None = None, *, local: bool = False, settings: AgentSettings = PLAIN
) -> UsageError:
    """The error that a chain for `review` is refused with."""
    with pytest.raises(UsageError) as caught:
        compose(models, "review", model, local_only=local, settings=settings)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("model", "tier", "backend", "told"),
    [
        ("claude-sonnet-4-6", "subagent", "claude", "claude-sonnet-4-6"),
        ("claude/opus", "subagent", "claude", "opus"),
        ("claude", "subagent", "claude", None),
        ("gpt-5", "subagent", "codex", "gpt-5"),
        ("gpt-4.1-mini", "subagent", "codex", "gpt-4.1-mini"),
        ("o3", "subagent", "codex", "o3"),
        ("o4-mini", "subagent", "codex", "o4-mini"),
        ("codex-mini-latest", "subagent", "codex", "codex-mini-latest"),
        ("codex/my-own", "subagent", "codex", "my-own"),
        ("copilot/gpt-5", "subagent", "copilot", "gpt-5"),
        ("ollama/phi4", "local", "openai", "ollama/phi4"),
        ("gpt-oss:20b", "local", "openai", "gpt-oss:20b"),
        ("olmo-7b", "local", "openai", "olmo-7b"),
        ("claudette", "local", "openai", "claudette"),
        ("anthropic/claude-sonnet-4-6", "local", "openai", "anthropic/claude-sonnet-4-6"),
    ],
)
def test_a_name_that_a_cli_claims_runs_by_it_and_any_other_is_local(
    model: str, tier: str, backend: str, told: str | None
) -> None:
    """The one rule by which a chain mixes machines of one's own and vendors."""
    found = candidate_of(model, PLAIN)
    assert (found.tier, found.backend, found.model, cli_name(found)) == (tier, backend, model, told)
    assert found.cloud or tier == "local"


def test_where_agents_are_simulated_no_model_is_real() -> None:
    """A rehearsal that reaches a server, or a vendor, is none."""
    chain = compose(MODELS, "review", None, settings=AgentSettings(backend="simulate"))
    judge = chain.verifier
    assert judge is not None
    assert {candidate.backend for candidate in (*chain.candidates, judge)} == {"simulate"}
    assert [candidate.tier for candidate in chain.candidates] == ["local", "local", "subagent"]


def test_the_callers_model_is_a_chain_of_one_without_a_verifier() -> None:
    """Who names the model wants that one, whatever comes of it."""
    chain = compose(MODELS, "review", "ollama/x", settings=PLAIN)
    assert (names(chain), chain.verifier, chain.pinned) == (["ollama/x"], None, True)
    assert chain.why == "review: ollama/x, named by the caller: no escalation, no verifier"


def test_a_nodes_chain_goes_before_the_files() -> None:
    """`models:` of a node is its author's word."""
    chain = compose(MODELS, "review", None, settings=PLAIN, given=("ollama/a", "claude-b"))
    assert (names(chain), chain.why) == (["ollama/a", "claude-b"], "review: chain of its node (ollama/a, claude-b)")


def test_the_skills_chain_goes_before_the_default_and_each_says_where_it_stands() -> None:
    """A person who asks why gets the line to change."""
    own, usual = (compose(MODELS, skill, None, settings=PLAIN) for skill in ("review", "spec"))
    assert own.why == "review: chain of models.yaml:9 (ollama/devstral, ollama/gemma4, claude-sonnet-4-6)"
    assert usual.why == "spec: default_chain of models.yaml:4 (ollama/phi4, claude-opus-4-6)"
    assert own.verifier == Candidate("claude-sonnet-4-6", "subagent", "claude", cloud=True)
    assert not own.pinned


def test_no_chain_at_all_is_refused_with_the_file_to_write_it_in() -> None:
    """Guessing a model would spend somebody's money."""
    assert str(refused(Models(path=Path("/p/models.yaml"))).place) == "/p/models.yaml"
    assert "/c/models.yaml" in refused(Models(looked=("/r/models.yaml", "/c/models.yaml"))).hint


def test_nobody_judges_a_chain_without_local_models() -> None:
    """A subagent is not verified, so a verifier that may not be asked is no reason to refuse it."""
    models = Models(verifier="ollama/judge", default_chain=("claude-opus-4-6",))
    assert compose(models, "x", None, settings=PLAIN).verifier is None


@pytest.mark.parametrize("where", ["call", "file", "skill"])
def test_local_only_keeps_to_the_house_and_says_what_it_left_out(where: str) -> None:
    """The reason has to be visible, else a chain that never escalates looks broken."""
    models = Models(
        verifier="ollama/judge",
        local_only=where == "file",
        skills={"review": SkillModels(("claude-a", "ollama/b", "gpt-5"), local_only=where == "skill", line=3)},
    )
    chain = compose(models, "review", None, local_only=where == "call", settings=PLAIN)
    assert names(chain) == ["ollama/b"]
    assert chain.why == "review: chain of models.yaml:3 (ollama/b); local_only leaves out claude-a, gpt-5"


@pytest.mark.parametrize(
    ("models", "model", "code"),
    [
        (Models(default_chain=("claude-a", "gpt-5")), None, "BW282"),
        (Models(default_chain=("ollama/a",), verifier="claude-a"), None, "BW283"),
        (Models(default_chain=("ollama/a",)), "claude-a", "BW284"),
        (Models(default_chain=("ollama/a",)), "openai/gpt-4o:cloud", "BW284"),
    ],
)
def test_what_local_only_cannot_keep_is_refused(models: Models, model: str | None, code: str) -> None:
    """It never falls back to a vendor, not even for the judge."""
    assert refused(models, model, local=True).code == code


def test_a_chain_may_only_hold_what_the_policy_allows() -> None:
    """The organisation's list binds models.yaml as it binds workflows."""
    only_local = AgentSettings(allowed=("openai",))
    chain = compose(Models(default_chain=("ollama/a", "claude-a")), "x", None, settings=only_local)
    assert (names(chain), chain.why) == (
        ["ollama/a"],
        "x: default_chain of models.yaml:0 (ollama/a); not allowed: claude-a",
    )
    assert refused(MODELS, settings=only_local).what.startswith("the verifier 'claude-sonnet-4-6'")
    assert refused(MODELS, "claude-a", settings=only_local).code == "BW285"
    assert refused(MODELS, settings=AgentSettings(allowed_models=("none",))).code == "BW285"
    bare = AgentSettings(allowed_models=("phi4", "opus"))
    assert names(compose(Models(default_chain=("ollama/phi4", "claude/opus")), "x", None, settings=bare)) == [
        "ollama/phi4",
        "claude/opus",
    ]


URLS = (
    "http://127.0.0.1:4000",
    "http://koala:8080",
    "https://api.example.com/v1",
    "http://8.8.8.8:1",
    "http://10.0.0.1",
)
NAMES = (
    "ollama/phi4", "phi4", "openai/gpt-4o", "claude-opus-4-6", "claude/opus", "gpt-5", "o3", "copilot/gpt-5",
    "glm:cloud", "ollama/gpt-oss:120b-cloud", "far/m", "anthropic/claude-x", "hosted_vllm/m", "codex-mini",
)  # fmt: skip
SAFE_HOSTS = ("127.0.0.1", "koala", "10.0.0.1", "localhost")
model_names = st.sampled_from(NAMES)
chains = st.lists(model_names, max_size=4).map(tuple)
entries: st.SearchStrategy[dict[str, Json]] = st.dictionaries(
    st.sampled_from(("litellm", "ollama", "openai", "llama-swap", "far")),
    st.fixed_dictionaries({"url": st.sampled_from(URLS)}),
)


def stays(candidate: Candidate, endpoints: dict[str, Json]) -> bool:
    """Whether a candidate can't leave the house, judged again by other means than the code under test."""
    if candidate.backend != "openai" or "cloud" in candidate.model:
        return False
    from bailiwick.routing.endpoints import Endpoints

    place = Endpoints(endpoints).place(candidate.model)
    host = place.url.split("//")[1].split("/")[0].split(":")[0]
    passes_on = place.kind == "litellm" and not candidate.model.startswith(("ollama/", "hosted_vllm/"))
    return host in SAFE_HOSTS and not passes_on


@given(
    chain=chains,
    usual=chains,
    verifier=st.one_of(st.just(""), model_names),
    model=st.none() | model_names,
    where=st.sampled_from(("call", "file", "skill")),
    endpoints=entries,
)
def test_local_only_never_lets_a_cloud_model_through(
    *,
    chain: tuple[str, ...],
    usual: tuple[str, ...],
    verifier: str,
    model: str | None,
    where: str,
    endpoints: dict[str, Json],
) -> None:
    """Whatever the files say: every model of the chain stays, the verifier too, or the call is refused."""
    models = Models(
        verifier=verifier,
        default_chain=usual,
        local_only=where == "file",
        skills={"s": SkillModels(chain, local_only=where == "skill")},
    )
    try:
        found = compose(models, "s", model, local_only=where == "call", settings=AgentSettings(endpoints=endpoints))
    except UsageError as error:
        assert error.hint  # noqa: PT017 - a refusal is one of two right answers
        return
    asked = [*found.candidates, *([found.verifier] if found.verifier else [])]
    assert found.candidates
    assert all(not each.cloud and stays(each, endpoints) for each in asked), asked


def test_a_model_without_a_price_is_left_out_where_that_is_refused() -> None:
    """Unknown is not zero: what leaves the house and nobody can price is not asked; what stays in it is free."""
    refusing = AgentSettings(unknown_cost="refuse")
    models = Models(default_chain=("ollama/phi4", "claude-never-heard-of", "claude-sonnet-4-6"))
    chain = compose(models, "review", None, settings=refusing)
    assert [one.model for one in chain.candidates] == ["ollama/phi4", "claude-sonnet-4-6"]
    assert "claude-never-heard-of" in chain.why
    assert len(compose(models, "review", None, settings=PLAIN).candidates) == 3
