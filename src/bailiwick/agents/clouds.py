"""Claude by way of a cloud account: what tells it so, the variables and files it needs there, and the cloud's hosts.

Its program signs each request itself, so the credential is exposed: the operator allows that, or it is refused.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from bailiwick.errors import NotReady

_OFF = frozenset({"0", "false", "no", "off"})
_REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_MODELS = (
    "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
)  # fmt: skip
MOST_FILES, MOST_BYTES = 500, 4 << 20
"""What is copied of a folder at most, where it can't be shown as it is."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """One cloud. Of each group in `needs` one variable has to be set; `files` are variables that name a file.

    `hosts` holds `{}` where the region stands; `folder` is below the person's home.
    """

    name: Literal["bedrock", "vertex"]
    switch: str
    needs: tuple[tuple[str, ...], ...]
    regions: tuple[str, ...]
    variables: tuple[str, ...]
    base_url: str
    folder: str
    files: tuple[str, ...]
    hosts: tuple[str, ...]

    def carried(self, env: Mapping[str, str]) -> dict[str, str]:
        """The variables of the operator's that its program needs, and no other."""
        names = (*self.variables, *self.regions, *self.files, self.base_url, *_MODELS)
        named = {name: env[name] for name in names if env.get(name)}
        return named | {name: value for name, value in env.items() if name.startswith("VERTEX_REGION_")}

    def reached(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The hosts that it has to reach: those of its regions, and of a gateway where one is named."""
        regions = dict.fromkeys(env[name] for name in self.regions if env.get(name))
        gateway = urlsplit(env.get(self.base_url, "")).hostname
        found = [host.format(region) for region in regions for host in self.hosts]
        return tuple(dict.fromkeys([*found, *([gateway] if gateway else [])]))

    def check(self, env: Mapping[str, str]) -> None:
        """Raises `NotReady` that names what is missing."""
        for group in self.needs:
            if not any(env.get(name) for name in group):
                raise NotReady(
                    f"{self.switch} is set, but {' or '.join(group)} is not",
                    hint=f"set {group[0]}, or unset {self.switch}",
                    code="BW255",
                )
        for name in self.regions:
            if env.get(name) and not _REGION.fullmatch(env[name]):
                raise NotReady(f"{name} is not a region: '{env[name][:60]}'", hint="such as eu-west-1", code="BW255")

    def shown(self, env: Mapping[str, str]) -> Iterator[Path]:
        """The files and folders of the operator's that its program reads."""
        yield from (Path(env[name]) for name in self.files if env.get(name) and Path(env[name]).is_file())
        if self.home(env).is_dir():
            yield self.home(env)

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder of the operator's that it reads."""
        return Path(env.get("HOME", "/")) / self.folder


CLOUDS: Mapping[str, Cloud] = {
    "bedrock": Cloud(
        name="bedrock",
        switch="CLAUDE_CODE_USE_BEDROCK",
        needs=(("AWS_REGION", "AWS_DEFAULT_REGION"),),
        regions=("AWS_REGION", "AWS_DEFAULT_REGION", "ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION"),
        variables=(
            "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
        base_url="ANTHROPIC_BEDROCK_BASE_URL",
        folder=".aws",
        files=("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"),
        hosts=(
            "bedrock-runtime.{}.amazonaws.com", "bedrock.{}.amazonaws.com", "sts.{}.amazonaws.com",
            "sts.amazonaws.com", "oidc.{}.amazonaws.com", "portal.sso.{}.amazonaws.com",
        ),
    ),
    "vertex": Cloud(
        name="vertex",
        switch="CLAUDE_CODE_USE_VERTEX",
        needs=(("CLOUD_ML_REGION",), ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")),
        regions=("CLOUD_ML_REGION",),
        variables=("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"),
        base_url="ANTHROPIC_VERTEX_BASE_URL",
        folder=".config/gcloud",
        files=("GOOGLE_APPLICATION_CREDENTIALS",),
        hosts=(
            "{}-aiplatform.googleapis.com", "aiplatform.googleapis.com", "oauth2.googleapis.com",
            "sts.googleapis.com", "iamcredentials.googleapis.com",
        ),
    ),
}  # fmt: skip
"""The clouds that Claude Code knows by a switch of its own."""
SWITCHES = frozenset(cloud.switch for cloud in CLOUDS.values())


def cloud_of(text: Callable[[str], str | None]) -> Cloud | None:
    """The cloud whose switch is on among these variables."""
    for cloud in CLOUDS.values():
        value = text(cloud.switch)
        if value and value.lower() not in _OFF:
            return cloud
    return None


def copy_small(source: Path, target: Path) -> None:
    """Copy the plain files of a folder, as far as they are few and small: a sandbox of another user can't read it."""
    files, total = 0, 0
    for path in sorted(source.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        files, total = files + 1, total + path.stat().st_size
        if files > MOST_FILES or total > MOST_BYTES:
            return
        there = target / path.relative_to(source)
        there.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(path, there)
        there.chmod(0o600)
