"""Which forge a repository belongs to, and where its token comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError
from bailiwick.proposals.settings import ProposalSettings, read_settings
from tests.unit.proposals.stage import git, make_repository


def _read(tmp_path: Path, remote: str, config: str = "", **env: str) -> ProposalSettings:
    repository = make_repository(tmp_path / "repo")
    if remote:
        git(repository, "remote", "add", "origin", remote)
    folder = tmp_path / "home" / "config"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config or "# nothing\n")
    environment = Environment({"BAILIWICK_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), **env})
    loaded = load_config(repository, {}, environment=environment, machine=tmp_path / "etc")
    return read_settings(loaded, repository, ManualClock(), environment)


GITEA = """forges:
  ours: {type: gitea, url: "http://git.example.org:3000/", token: "${secret:env:FORGE}"}
  other: {type: github, url: ghe.example.org, token: "${secret:env:OTHER}"}
publish: {mode: auto, labels: [agent], push_to: fork}
commit: {author: "Robo <r@example.org>", signoff: true}
network: {proxy: "http://proxy:3128", no_proxy: ".example.org"}
"""


def test_the_forge_is_the_one_with_the_remotes_host(tmp_path: Path) -> None:
    """By https or ssh, with or without .git; what the operator set comes along."""
    settings = _read(tmp_path, "git@git.example.org:acme/shop.git", GITEA, FORGE="tok")
    assert settings.site is not None
    assert (settings.site.forge, settings.site.type, settings.site.url) == (
        "ours",
        "gitea",
        "http://git.example.org:3000",
    )
    assert settings.site.git_url("acme") == "http://git.example.org:3000/acme/shop.git"
    assert settings.site.full_name == "git.example.org:3000/acme/shop"
    assert (settings.mode, settings.labels, settings.site.fork, settings.signoff) == ("auto", ("agent",), True, True)
    assert settings.network.proxy is None
    assert settings.token is not None
    assert settings.token() == "tok"
    assert settings.open_forge().site.full_name == "git.example.org:3000/acme/shop"


def test_an_address_without_a_scheme_is_https_and_goes_through_the_proxy(tmp_path: Path) -> None:
    """As people write it; the proxy holds for hosts that are not listed."""
    text = GITEA.replace('.example.org"', '.other.org"')
    settings = _read(tmp_path, "https://ghe.example.org/acme/shop", text, OTHER="tok")
    assert settings.site is not None
    assert (settings.site.url, settings.network.proxy) == ("https://ghe.example.org", "http://proxy:3128")


@pytest.mark.parametrize("name", ["GH_TOKEN", "GITHUB_TOKEN"])
def test_github_needs_no_entry_but_a_token(tmp_path: Path, name: str) -> None:
    """The names that every tool knows; publishing still needs a person's word."""
    settings = _read(tmp_path, "https://github.com/acme/shop.git", **{name: "tok"})
    assert settings.site is not None
    assert (settings.site.forge, settings.site.url, settings.mode) == ("github", "https://github.com", "ask")
    assert settings.token is not None
    assert settings.token() == "tok"


def test_those_names_open_no_other_host(tmp_path: Path) -> None:
    """A token of github.com is never sent elsewhere."""
    config = "forges: {ours: {type: github, url: https://ghe.example.org}}\n"
    settings = _read(tmp_path, "https://ghe.example.org/acme/shop.git", config, GITHUB_TOKEN="tok")
    assert settings.token is not None
    with pytest.raises(BailiwickError, match="no token for the forge 'ours'") as refused:
        settings.token()
    assert "forges.ours.token" in refused.value.hint


@pytest.mark.parametrize(
    ("remote", "why"),
    [("", "no remote"), ("/some/path", "no remote"), ("https://unknown.example.org/a/b", "unknown.example.org")],
)
def test_without_a_forge_it_stays_local_and_says_why(tmp_path: Path, remote: str, why: str) -> None:
    """The reason is what a person needs to change it."""
    settings = _read(tmp_path, remote)
    assert settings.site is None
    assert why in settings.why_local
    with pytest.raises(BailiwickError, match="stay here"):
        settings.open_forge()


def test_a_token_is_never_shown(tmp_path: Path) -> None:
    """Settings end up in messages and tracebacks."""
    settings = _read(tmp_path, "git@git.example.org:acme/shop.git", GITEA, FORGE="s3cret-token")
    assert "s3cret-token" not in repr(settings)
    assert "s3cret-token" not in repr(settings.open_forge())
