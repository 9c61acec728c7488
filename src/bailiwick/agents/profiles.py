"""The operator's codex profiles: which there are, where each of them sends its prompts, and what an agent sees of them.

A profile is `NAME.config.toml` in the operator's codex home, on top of `config.toml` there; tables `[profiles.NAME]` of
`config.toml`, as older versions had them, count as such files. The provider that a profile names is the only place its
prompts may go to, with its own key; one that the broker can't stand in for is refused before anything is sent.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import Json

MAX_FILE = 256 << 10
"""Bytes of a profile; a larger file is none."""
NO_PROFILE = "BW257"
NO_PROVIDER = "BW258"
_SUFFIX = ".config.toml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_LOCAL = {"ollama": "11434", "oss": "11434", "lmstudio": "1234"}
"""Providers that codex knows by itself, and the ports of this machine that they answer at."""
_KNOWN = frozenset(
    {
        "name", "base_url", "env_key", "env_key_instructions", "wire_api", "http_headers", "env_http_headers",
        "experimental_bearer_token", "request_max_retries", "stream_max_retries", "stream_idle_timeout_ms",
        "supports_websockets", "websocket_connect_timeout_ms",
    }
)  # fmt: skip
"""What a provider may say that the broker can stand in for."""


@dataclass(frozen=True, slots=True)
class CodexProfile:
    """A profile of the operator's, a model of it; empty means codex's own default."""

    profile: str = ""
    slug: str = ""


def choose_model(model: str | None, default_profile: str = "") -> CodexProfile:
    """Read `<profile>[@<slug>]`. A profile that is named wins over the default one."""
    profile, _, slug = (model or "").partition("@")
    return CodexProfile(profile or default_profile, slug)


@dataclass(frozen=True, slots=True)
class Provider:
    """Where the prompts of a profile go. `headers` open it; they are never shown."""

    name: str
    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Profiles:
    """What an operator wrote for codex: the settings that always hold, and those of each profile."""

    home: Path
    base: Mapping[str, Json] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)

    def choose(self, model: str | None, default: str = "") -> CodexProfile:
        """The profile and the model that are meant. Raises `UsageError` where there is no such profile."""
        choice = choose_model(model, default or _text(self.base, "profile"))
        profile = choice.profile
        if profile and profile not in self.named:
            known = ", ".join(sorted(self.named)) or "none"
            raise UsageError(
                f"there is no codex profile '{profile}'" + self._why(f"{profile}{_SUFFIX}"),
                hint=f"known: {known}; a profile is the file {self.home}/NAME{_SUFFIX}; models are written "
                "<profile>@<model>, or @<model> without a profile",
                code=NO_PROFILE,
            )
        return choice

    def provider(self, profile: str, env: Mapping[str, str]) -> Provider | None:
        """Where this profile sends its prompts; None where it names no provider: codex's own credential holds.

        Raises `UsageError` for a provider that can't be brokered, `NotReady` where the key it names is not set.
        """
        if "config.toml" in self.broken:
            raise UsageError(
                f"{self.home}/config.toml can't be read: {self.broken['config.toml']}",
                hint="fix it: without it, it is not known where prompts may go",
                code=NO_PROVIDER,
            )
        own = self.named.get(profile, {})
        name = _text(own, "model_provider") or _text(self.base, "model_provider")
        entry = {**_table(self.base, "model_providers", name), **_table(own, "model_providers", name)}
        elsewhere = _text(own, "openai_base_url") or _text(self.base, "openai_base_url")
        if not entry and name in ("", "openai"):
            if not elsewhere:
                return None
            entry = {"base_url": elsewhere, "env_key": "OPENAI_API_KEY"}
        if not entry and name in _LOCAL:
            port = env.get("CODEX_OSS_PORT") or _LOCAL[name]
            entry = {"base_url": env.get("CODEX_OSS_BASE_URL") or f"http://127.0.0.1:{port}/v1"}
        return _read_provider(name or "openai", entry, self._words(profile), env)

    def _words(self, profile: str) -> str:
        return f"codex profile '{profile}'" if profile else f"{self.home}/config.toml"

    def _why(self, file: str) -> str:
        return f": {self.home}/{file} can't be read: {self.broken[file]}" if file in self.broken else ""


def codex_home(env: Mapping[str, str]) -> Path:
    """Where codex keeps its configuration."""
    return Path(env["CODEX_HOME"]) if env.get("CODEX_HOME") else Path(env.get("HOME", "/")) / ".codex"


def chosen_provider(model: str | None, env: Mapping[str, str]) -> tuple[str, Provider | None]:
    """The profile that a model means here, and the provider that it names; raises as `choose` and `provider` do."""
    profiles = read_profiles(env)
    profile = profiles.choose(model, env.get("CODEX_PROFILE", "")).profile
    return profile, profiles.provider(profile, env)


def read_profiles(env: Mapping[str, str]) -> Profiles:
    """What lies in the operator's codex home. A file that is no TOML is kept as broken."""
    there = codex_home(env)
    found: dict[str, dict[str, Json]] = {}
    broken: dict[str, str] = {}
    for source in sorted([*there.glob(f"*{_SUFFIX}"), there / "config.toml"]):
        if not source.is_file() or source.stat().st_size > MAX_FILE:
            continue
        try:
            found[source.name] = tomllib.loads(source.read_text("utf-8", "replace"))
        except (tomllib.TOMLDecodeError, OSError, RecursionError) as error:
            broken[source.name] = " ".join(str(error).split())[:200]
    base = found.pop("config.toml", {})
    older = base.get("profiles")
    named = {name: table for name, table in older.items() if isinstance(table, dict)} if isinstance(older, dict) else {}
    named |= {name.removesuffix(_SUFFIX): table for name, table in found.items()}
    return Profiles(there, base, {name: table for name, table in named.items() if _NAME.fullmatch(name)}, broken)


def carry_profiles(env: Mapping[str, str], home: Path) -> dict[str, str]:
    """Write the profiles to the codex home below `home`, without their providers; gives the variable that names it.

    Providers stay outside: the agent is pointed at the broker, and the keys of a provider are none of its business.
    """
    profiles = read_profiles(env)
    folder = home / ".codex"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, table in {"config": profiles.base, **{f"{n}.config": t for n, t in profiles.named.items()}}.items():
        kept = {key: value for key, value in table.items() if key not in ("model_providers", "profiles", "profile")}
        lines = [f"{json.dumps(key)} = {_toml(value)}\n" for key, value in kept.items()]
        (folder / f"{name}.toml").write_text("".join(lines), "utf-8")
    return {"CODEX_HOME": str(folder)}


def _read_provider(name: str, entry: Mapping[str, Json], where: str, env: Mapping[str, str]) -> Provider:
    strange = sorted(key for key, value in entry.items() if key not in _KNOWN and value)
    wire = _text(entry, "wire_api") or "responses"
    if strange or wire != "responses" or not _text(entry, "base_url"):
        why = "names no base_url" if not entry.get("base_url") else f"sets {', '.join(strange) or f'wire_api {wire}'}"
        raise UsageError(
            f"the provider '{name}' of {where} can't be reached through the broker: it {why}",
            hint="give it base_url and env_key and the wire_api responses, or choose another profile; its prompts are "
            "sent nowhere else",
            code=NO_PROVIDER,
        )
    named = _text(entry, "env_key")
    token = env.get(named, "") if named else _text(entry, "experimental_bearer_token")
    if named and not token:
        raise NotReady(
            f"the provider '{name}' of {where} takes its key from {named}, which is not set",
            hint=f"set {named}; no other key is used for it",
            code="BW254",
        )
    fixed, told = entry.get("http_headers"), entry.get("env_http_headers")
    headers = {str(k).lower(): str(v) for k, v in fixed.items()} if isinstance(fixed, dict) else {}
    headers |= {str(k).lower(): env[v] for k, v in told.items() if env.get(str(v))} if isinstance(told, dict) else {}
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    return Provider(name, _text(entry, "base_url"), headers, token or None)


def _text(table: Mapping[str, Json], key: str) -> str:
    value = table.get(key)
    return value if isinstance(value, str) else ""


def _table(table: Mapping[str, Json], key: str, name: str) -> dict[str, Json]:
    entries = table.get(key)
    found = entries.get(name) if isinstance(entries, dict) else None
    return found if isinstance(found, dict) else {}


def _toml(value: Json) -> str:
    """A value as TOML, tables in one line: strings, numbers and lists are written as JSON writes them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return value.isoformat() if hasattr(value, "isoformat") else json.dumps(str(value))
