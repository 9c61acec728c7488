"""What tokens cost: by the table, nothing only where the configuration says so, unknown otherwise."""

from __future__ import annotations

import pytest

from bailiwick.agents.prices import TokenCount, price, price_for, warm

SONNET = "claude-sonnet-4-5-20250929"
MILLION = 1_000_000


def test_the_table_prices_prompt_cache_and_answer_apart() -> None:
    """A cached prompt is ten times cheaper, a written cache dearer; taking all for plain input would be far off."""
    plain = price(SONNET, TokenCount(input=100_000))
    cached = price(SONNET, TokenCount(input=100_000, cached=100_000))
    written = price(SONNET, TokenCount(input=100_000, written=100_000))
    hour = price(SONNET, TokenCount(input=100_000, written=100_000, written_hour=100_000))
    answer = price(SONNET, TokenCount(output=100_000))
    assert plain == pytest.approx(0.30)
    assert cached == pytest.approx(0.03)
    assert written == pytest.approx(0.375)
    assert hour == pytest.approx(0.60)
    assert answer == pytest.approx(1.50)


@pytest.mark.parametrize("model", ["", "sonnet", "no-such-model", "qwen2.5-coder:7b", "vendor/none-such"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    """Unknown is not zero: whoever asks has to decide what to do."""
    assert price(model, TokenCount(10, 10)) is None


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"])
def test_a_gateways_spelling_is_understood(model: str) -> None:
    """Behind a gateway the vendor's name stands before the model's."""
    assert price(model, TokenCount(input=100_000)) == pytest.approx(0.30)


def test_only_the_configuration_makes_a_model_free() -> None:
    """A local backend, or an endpoint that is called free; the same model elsewhere costs what it costs."""
    endpoints = {
        "swap": {"url": "http://127.0.0.1:8080", "free": True},
        "paid": {"url": "http://gate:1", "free": False},
    }
    tokens = TokenCount(10, 10)
    assert price_for("ollama", {})("anything", tokens) == 0
    assert price_for("simulate", {})("anything", tokens) == 0
    assert price_for("openai", endpoints, "http://127.0.0.1:8080/v1")("anything", tokens) == 0
    assert price_for("openai", endpoints, "http://gate:1")("anything", tokens) is None
    assert price_for("openai", endpoints, "http://127.0.0.1:9090")("anything", tokens) is None
    assert price_for("openai", endpoints)("anything", tokens) is None


def test_a_count_that_contradicts_itself_has_no_price() -> None:
    """More from the cache than there was: the table refuses, the run goes on."""
    assert price(SONNET, TokenCount(input=1, cached=5)) is None


def test_the_table_can_be_loaded_ahead() -> None:
    """Half a second of loading must not stop every running turn."""
    warm()
    assert price(SONNET, TokenCount(output=1)) is not None
