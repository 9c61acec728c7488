"""Which credential a backend uses, where it is found, and that it is never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bailiwick.agents.credentials import (
    SECRET_VARIABLES,
    Credential,
    login_environment,
    login_home,
    resolve_credential,
)
from bailiwick.config.secrets import resolve_secret
from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError, NotReady, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def configured(home: Path, text: str = "") -> Config:
    """The configuration of a person with this file."""
    if text:
        (home / "config").mkdir(parents=True)
        (home / "config" / "config.yaml").write_text(text)
    return load_config(home, {}, environment=Environment({"BAILIWICK_HOME": str(home)}))


def found(home: Path, backend: str, **names: str) -> Credential:
    """The credential of a backend in an environment."""
    return resolve_credential(backend, configured(home), Environment(names))


@pytest.mark.parametrize(
    ("backend", "names", "expected"),
    [
        ("claude", {"ANTHROPIC_API_KEY": "k"}, ("ANTHROPIC_API_KEY", "api_key", "metered", False)),
        ("claude", {"CLAUDE_CODE_OAUTH_TOKEN": "t"}, ("CLAUDE_CODE_OAUTH_TOKEN", "oauth", "subscription", False)),
        ("claude", {"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_API_KEY": "k"}, ("bedrock", "bedrock", "metered", True)),
        ("claude", {"CLAUDE_CODE_USE_BEDROCK": "0"}, ("claude", "none", "metered", False)),
        ("codex", {"OPENAI_API_KEY": "k"}, ("OPENAI_API_KEY", "api_key", "metered", False)),
        ("codex", {"OPENAI_API_KEY": "k", "CODEX_API_KEY": "c"}, ("CODEX_API_KEY", "api_key", "metered", False)),
        ("openai", {"OPENAI_API_KEY": "k"}, ("OPENAI_API_KEY", "api_key", "metered", False)),
        ("copilot", {"COPILOT_GITHUB_TOKEN": "t"}, ("COPILOT_GITHUB_TOKEN", "login", "subscription", True)),
        ("ollama", {"OPENAI_API_KEY": "k"}, ("ollama", "none", "metered", False)),
    ],
)
def test_the_environment_gives_a_backend_its_own(
    tmp_path: Path, backend: str, names: dict[str, str], expected: tuple[object, ...]
) -> None:
    """Two backends on one key share its limits, so the key is what a credential is named by."""
    credential = found(tmp_path, backend, **names)
    assert (credential.name, credential.kind, credential.billing, credential.exposed) == expected


def test_the_configuration_comes_first_and_names_the_credential(tmp_path: Path) -> None:
    """Several keys of one vendor have limits of their own."""
    text = "credentials:\n  work: {backend: claude, billing: subscription, token: '${secret:env:WORK_KEY}'}\n"
    config = configured(tmp_path, text)
    credential = resolve_credential("claude", config, Environment({"WORK_KEY": "sk-w", "ANTHROPIC_API_KEY": "k"}))
    assert credential == Credential("work", "claude", "api_key", "subscription", "sk-w")
    assert resolve_credential("codex", config, Environment({})).kind == "none"


def test_a_configured_token_is_looked_up_with_the_configured_provider(tmp_path: Path) -> None:
    """One file of secrets for all credentials, so that none has to be in the environment."""
    text = "credentials: {work: {backend: claude, token: '${secret:agents/work#token}'}}\n"
    text += "secrets: {provider: file, file: s.yaml}\n"
    config = configured(tmp_path, text)
    file = tmp_path / "config" / "s.yaml"
    file.touch(0o600)
    file.write_text("agents: {work: {token: sk-in-the-file}}\n")
    assert resolve_credential("claude", config, Environment({})).token == "sk-in-the-file"


def test_a_configured_name_without_a_token_renames_what_is_found(tmp_path: Path) -> None:
    """A reserve can be set for a login, which has no token to refer to."""
    config = configured(tmp_path, "credentials: {mine: {backend: claude, billing: subscription}}\n")
    credential = resolve_credential("claude", config, Environment({"ANTHROPIC_API_KEY": "k"}))
    assert (credential.name, credential.billing, credential.token) == ("mine", "subscription", "k")
    assert resolve_credential("claude", config, Environment({})).kind == "none"


def test_a_long_lived_token_is_known_by_its_look(tmp_path: Path) -> None:
    """It goes into another header than a key, and has to be announced."""
    config = configured(tmp_path, "credentials: {a: {backend: claude, token: '${secret:env:T}'}}\n")
    token = resolve_credential("claude", config, Environment({"T": "sk-ant-oat01-x"}))
    assert (token.kind, token.billing) == ("oauth", "subscription")
    assert token.headers == {"authorization": "Bearer sk-ant-oat01-x"}
    assert token.added == {"anthropic-beta": "oauth-2025-04-20"}
    key = resolve_credential("claude", config, Environment({"T": "sk-ant-api03-x"}))
    assert (key.headers, key.added) == ({"x-api-key": "sk-ant-api03-x"}, {})
    assert Credential("n", "codex", "api_key", token="k").headers == {"authorization": "Bearer k"}
    assert Credential("n", "claude", "login").headers == {}


def test_a_login_of_our_own_is_the_last_choice_and_exposed(tmp_path: Path) -> None:
    """The agent's program reads it itself, so it can't be kept from the agent."""
    config = configured(tmp_path)
    home = login_home(config.paths, "codex")
    assert home == config.paths.state / "logins" / "codex"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "auth.json").write_text("{}")
    assert found(tmp_path, "codex") == Credential("login-codex", "codex", "login", "subscription", None, exposed=True)
    assert found(tmp_path, "codex", OPENAI_API_KEY="k").kind == "api_key"
    assert login_environment(config.paths, "codex") == {"HOME": str(home), "CODEX_HOME": str(home / ".codex")}


def test_a_token_is_in_no_text_of_its_credential() -> None:
    """Credentials end up in logs and tracebacks."""
    credential = Credential("n", "claude", "api_key", token="sk-secret")
    assert "sk-secret" not in f"{credential} {credential!r}"
    assert {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY"} <= SECRET_VARIABLES


def test_a_secret_is_read_from_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    """What others can read is no secret; the message says how to close the file and never what is in it."""
    file = tmp_path / "key"
    file.write_text("  sk-in-a-file\n")
    file.chmod(0o600)
    assert resolve_secret(f"${{secret:file:{file}}}") == "sk-in-a-file"
    assert resolve_secret("${secret:file:~/key}", Environment({"HOME": str(tmp_path)})) == "sk-in-a-file"
    file.chmod(0o640)
    with pytest.raises(NotReady) as caught:
        resolve_secret(f"${{secret:file:{file}}}")
    assert (caught.value.code, caught.value.hint) == ("BW264", f"chmod 600 {file}")
    assert "sk-in-a-file" not in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "kind", "code"),
    [
        ("${secret:env:NOT_SET}", NotReady, "BW263"),
        ("${secret:env:BLANK}", NotReady, "BW263"),
        ("${secret:env:TWO}", NotReady, "BW263"),
        ("${secret:file:/no/such/file}", NotReady, "BW263"),
        ("${secret:file:/}", NotReady, "BW264"),
        ("${secret:file:relative}", UsageError, "BW262"),
        ("${secret:agents/claude#token}", UsageError, "BW262"),
        ("sk-plain", UsageError, "BW262"),
    ],
)
def test_a_secret_that_can_not_be_read_says_what_to_do(reference: str, kind: type[BailiwickError], code: str) -> None:
    """Exit 8 where something is missing, 2 where the reference is wrong; a plain value is not repeated."""
    with pytest.raises(kind) as caught:
        resolve_secret(reference, Environment({"BLANK": "  ", "TWO": "a b"}))
    assert caught.value.code == code
    assert caught.value.hint
    assert "sk-plain" not in str(caught.value)
