"""Which secrets are referred to, whether they are there, and which values are covered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bailiwick.agents.credentials import LOGINS, login_home
from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.secrets.service import KnownSecrets, check_secrets, known_secrets

CONFIG = """
credentials: {work: {backend: claude, token: '${secret:env:WORK_KEY}'}}
forges: {hub: {type: github, url: 'https://hub.example', token: '${secret:HUB}'}}
endpoints: {openai: {url: 'http://127.0.0.1:9/v1', key: '${secret:env:ABSENT}'}}
network: {proxy: 'http://me:proxy-password@proxy.example:3128'}
"""
VALUES = {"WORK_KEY": "sk-work-123456", "HUB": "ghp-hub-123456"}


def configured(home: Path, text: str = CONFIG) -> Config:
    """The configuration of a person with this file."""
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.yaml").write_text(text)
    return load_config(home, {}, environment=Environment({"BAILIWICK_HOME": str(home)}))


def test_every_reference_is_checked_and_no_value_is_in_the_answer(tmp_path: Path) -> None:
    """What a person needs before a night's run: what is missing, who needs it, where it was written."""
    checked = check_secrets(configured(tmp_path), Environment(VALUES))
    told = {each.key: (each.ok, each.user, each.code) for each in checked}
    assert told == {
        "credentials.work.token": (True, "the credential 'work', by agents", ""),
        "forges.hub.token": (True, "the forge 'hub', by proposals", ""),
        "endpoints.openai.key": (False, "the endpoint 'openai', by agents", "BW263"),
    }
    assert checked[0].origin.endswith("config.yaml:2:46")
    assert not any(value in repr(checked) for value in VALUES.values())


def test_what_references_stand_for_is_known_and_what_is_not_there_passed_over(tmp_path: Path) -> None:
    """A missing secret must not keep the others from being covered."""
    known = known_secrets(configured(tmp_path), Environment(VALUES))
    assert {*VALUES.values(), "proxy-password"} == set(known)


@pytest.mark.parametrize(
    ("name", "value", "covered"),
    [
        ("GITHUB_TOKEN", "ghp_abcdef", True),
        ("ANTHROPIC_API_KEY", "sk-ant-abc", True),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtn", True),
        ("npm_config__auth-token", "npm_abcdef", True),
        ("PGPASSWORD", "pg-password", True),
        ("BAILIWICK_KEY_PASSPHRASE", "open sesame", True),
        ("DATABASE_URL", "postgres://app:db-password@db.example/app", False),
        ("SSH_AUTH_SOCK", "/tmp/agent.123", False),
        ("SECRET_TOKEN", "/run/secrets/token", False),
        ("MAX_TOKENS", "some-value", False),
        ("TOKENIZERS_PARALLELISM", "some-value", False),
        ("ACCESS_TOKEN", "disabled", False),
        ("BROWSER_COMPAT", "some-value", False),
        ("PATH", "/usr/bin:/bin", False),
    ],
)
def test_variables_are_known_by_their_names(tmp_path: Path, name: str, value: str, covered: bool) -> None:
    """A script prints its environment, and a token of the operator is in the log; a path or a word is no secret."""
    known = known_secrets(configured(tmp_path, "{}"), Environment({name: value}))
    assert (value in known) == covered
    assert ("db-password" in known) == ("db-password" in value)


def test_the_tokens_of_our_logins_are_known(tmp_path: Path) -> None:
    """Agents' programs hold them and print them on a bad day."""
    config = configured(tmp_path, "{}")
    kept = login_home(config.paths, "claude") / LOGINS["claude"].kept
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"oauth": {"accessToken": "sk-ant-oat01", "scopes": ["user:profile"], "n": 1}}))
    assert known_secrets(config, Environment({})) == ("sk-ant-oat01",)
    kept.write_text("no json")
    assert known_secrets(config, Environment({})) == ()


def test_a_secret_that_a_node_gets_is_covered_from_then_on(tmp_path: Path) -> None:
    """References in workflows are not in the configuration; they are learnt when they are resolved."""
    coverage = KnownSecrets.of(configured(tmp_path), Environment({**VALUES, "LATE": "late-secret"}))
    assert coverage.text("sk-work-123456 late-secret") == "[redacted] late-secret"
    assert coverage.filled("Bearer ${secret:LATE}") == "Bearer late-secret"
    assert coverage.text("sk-work-123456 late-secret") == "[redacted] [redacted]"
    assert coverage.redactor is coverage.redactor
