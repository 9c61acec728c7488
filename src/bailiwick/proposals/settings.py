"""What the operator configured for proposals of one repository, and the forge that its remote belongs to.

A forge is an entry below `forges` whose url has the remote's host. github.com needs no entry: its token then comes from
GH_TOKEN or GITHUB_TOKEN. A repository can set none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from bailiwick.clock import Clock
from bailiwick.config.repository import Remote, find_remote
from bailiwick.config.secrets import Secrets, checked_token
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.egress.upstream_proxy import network_of
from bailiwick.errors import NotReady
from bailiwick.ids import Json
from bailiwick.proposals.consent import Mode
from bailiwick.proposals.forges.port import Forge, ForgeRepository, ForgeType
from bailiwick.proposals.forges.rest import Network
from bailiwick.proposals.message import DEFAULT_AUTHOR

FORGES: dict[str, str] = {
    "github": "bailiwick.proposals.forges.github:GitHub",
    "gitea": "bailiwick.proposals.forges.gitea:Gitea",
    "forgejo": "bailiwick.proposals.forges.gitea:Gitea",
}
"""The forges there are, by type; each has an `open(site, token, network)`."""
TOKEN_VARIABLES = ("GH_TOKEN", "GITHUB_TOKEN")
"""Where the token of github.com is looked for when no forge is configured for it."""
NO_FORGE = "BW475"
NO_TOKEN = "BW476"  # noqa: S105  the code of an error


@dataclass(frozen=True, slots=True)
class ProposalSettings:
    """The operator's word on proposals of a repository. `token` reads the forge's token, late; it may raise."""

    mode: Mode = "ask"
    draft: bool = True
    labels: tuple[str, ...] = ()
    author: str = DEFAULT_AUTHOR
    signoff: bool = False
    sign: bool = False
    base: str = ""
    site: ForgeRepository | None = None
    token: Callable[[], str] | None = field(default=None, repr=False)
    network: Network = field(default_factory=Network)
    why_local: str = ""

    def open_forge(self) -> Forge:
        """The forge with its token; raises `NotReady` where there is none. The caller closes it."""
        if self.site is None or self.token is None:
            raise NotReady(
                f"proposals of this repository stay here: {self.why_local}",
                hint="add the forge: forges.NAME.type, forges.NAME.url, forges.NAME.token",
                code=NO_FORGE,
            )
        module, attribute = FORGES[self.site.type].split(":")
        made: Forge = getattr(import_module(module), attribute).open(self.site, self.token(), self.network)
        return made


def read_settings(
    config: Config, repository: Path, clock: Clock, environment: Environment | None = None
) -> ProposalSettings:
    """The settings for a repository; reads its remote from git's file and runs nothing."""
    env = environment or Environment()
    remote = find_remote(repository)
    found = _find(config.get("forges"), remote)
    site, token = None, None
    why = f"no forge is configured for {remote.host}" if remote else "it has no remote on a forge"
    if remote is not None and found is not None:
        name, kind, url, reference = found
        fork = config.get("publish.push_to") == "fork"
        why = ""
        site = ForgeRepository(
            name, type=kind, url=url, owner=remote.owner, repository=remote.name, clock=clock, fork=fork
        )
        token = partial(_token, site, reference, Secrets.of(config, env))
    return ProposalSettings(
        mode=config.get("publish.mode"),
        draft=config.get("publish.draft"),
        labels=tuple(config.get("publish.labels") or ()),
        author=config.get("commit.author") or DEFAULT_AUTHOR,
        signoff=config.get("commit.signoff"),
        sign=config.get("commit.sign"),
        base=config.get("base") or "",
        site=site,
        token=token,
        network=Network(*network_of(config, (urlsplit(site.url).hostname or "") if site else "")),
        why_local=why,
    )


def _token(site: ForgeRepository, reference: str | None, secrets: Secrets) -> str:
    if reference:
        return secrets.token(reference)
    for name in TOKEN_VARIABLES if site.host == "github.com" else ():
        if found := secrets.environment.text(name):
            return checked_token(found, name)
    raise NotReady(
        f"there is no token for the forge '{site.forge}'",
        hint=f"set forges.{site.forge}.token to a reference such as ${{secret:env:FORGE_TOKEN}}",
        code=NO_TOKEN,
    )


def _find(forges: dict[str, Json], remote: Remote | None) -> tuple[str, ForgeType, str, str | None] | None:
    """The configured forge with the remote's host: its name, type, url and token reference."""
    if remote is None:
        return None
    for name, entry in sorted(forges.items()):
        kind: Json = entry.get("type") or name
        url = _address(entry.get("url") or ("github.com" if kind == "github" else ""))
        if kind in FORGES and (urlsplit(url).hostname or "") == remote.host:
            return name, kind, url, entry.get("token")
    if remote.host == "github.com":
        return "github", "github", "https://github.com", None
    return None


def _address(url: str) -> str:
    return (url if "://" in url or not url else f"https://{url}").rstrip("/")
