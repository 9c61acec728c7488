"""The only reader of environment variables. Those that stand for keys are in `keys.py`; here are the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

PREFIX = "BAILIWICK_"

MEANING = {
    "BAILIWICK_HOME": "one directory for config, state, cache and run",
    "BAILIWICK_RUN": "set for our children: the run they belong to; `approve` refuses where it is set",
    "BAILIWICK_EPOCH": "set for our children: the epoch of the owner that started them",
    "BAILIWICK_EFFECT_KEY": "set for scripts: the same over attempts, so that work can be made idempotent",
    "BAILIWICK_WORKSPACE": "set for scripts: the run's own directory",
    "BAILIWICK_WORKFLOW_DIR": "set for scripts: the pinned workflow directory",
    "BAILIWICK_ROOT": "set for our children: the run at the top of their tree",
    "BAILIWICK_ATTEMPT": "set for scripts: the number of the attempt in this visit, from 1",
    "BAILIWICK_MODEL_TOKEN": "set for agents: the token of one turn, for the model endpoint they are pointed at",
    "BAILIWICK_NODE": "set for scripts: the id of their node",
    "BAILIWICK_KEY_PASSPHRASE": "the passphrase of a signing key where there is no terminal",
    "BAILIWICK_GATE": "set for Node's test runners in a gate: the pipe that our reporter writes to; removed at once",
    "BAILIWICK_PIPE": "set for cargo in a gate: the pipe that outcomes are written to; removed before a test starts",
    "BAILIWICK_TOKEN": "set for cargo in a gate: the token of the run; removed before a test starts",
    "BAILIWICK_PLAIN": "set for cargo in a gate: whether tests run as they are; removed before a test starts",
    "BAILIWICK_CRASH_AT": "for tests: the crash point at which the process ends itself",
    **dict.fromkeys(
        (
            "DOCKER_HOST",
            "DOCKER_CONTEXT",
            "DOCKER_CONFIG",
            "DOCKER_TLS_VERIFY",
            "DOCKER_CERT_PATH",
            "DOCKER_API_VERSION",
            "CONTAINER_HOST",
            "CONTAINERS_CONF",
            "CONTAINERS_STORAGE_CONF",
        ),
        "where the engine of containers is; passed to its command line",
    ),
    "LITELLM_API_KEY": "the key of the LiteLLM proxy where endpoints.litellm.key is not set",
    "GH_TOKEN": "the token for github.com where no forge is configured for it",
    "GITHUB_TOKEN": "the token for github.com where no forge is configured for it, after GH_TOKEN",
    "WORKFLOW_DIR": "the workflow of `run` where none is named, as workhorse had it",
    "NO_COLOR": "no colours, whatever its value",
    "TZ": "the zone in which times are shown",
    "VISUAL": "the editor of `config edit`",
    "EDITOR": "the editor of `config edit`, where VISUAL is not set",
    "XDG_CONFIG_HOME": "where configuration directories are",
    "XDG_STATE_HOME": "where state directories are",
    "XDG_CACHE_HOME": "where cache directories are",
    "XDG_RUNTIME_DIR": "where sockets and locks are",
}
"""Every variable that is read or set and is no configuration key."""

SECRET_NAMES = frozenset({"BAILIWICK_KEY_PASSPHRASE"})
"""Ours, and nobody else's business."""


class Environment:
    """A view of environment variables; an empty value counts as not set. Tests bring their own mapping."""

    __slots__ = ("_names",)

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = os.environ if names is None else names

    def text(self, name: str) -> str | None:
        """The value of a variable, or None."""
        return self._names.get(name) or None

    def own_names(self) -> list[str]:
        """The names of all set variables that start with ours."""
        return sorted(name for name, value in self._names.items() if name.startswith(PREFIX) and value)

    def directory(self, name: str) -> Path | None:
        """The absolute directory that a variable names; a relative one counts as not set, as the XDG rules say."""
        value = self.text(name)
        return Path(value) if value and os.path.isabs(value) else None  # noqa: PTH117 - no Path is made in vain

    def home(self) -> Path:
        """The person's home directory."""
        return self.directory("HOME") or Path("~").expanduser()

    def colour_wanted(self) -> bool:
        """Whether colours may be used where there is a terminal."""
        return "NO_COLOR" not in self._names and self.text("TERM") != "dumb"

    def zone(self) -> str | None:
        """The name of the zone that the person's session is set to."""
        return self.text("TZ")

    def crash_point(self) -> str | None:
        """The crash point at which this process has to end itself."""
        return self.text("BAILIWICK_CRASH_AT")

    def workflow_dir(self) -> str | None:
        """The workflow that is meant where none is named."""
        return self.text("WORKFLOW_DIR")

    def inside_run(self) -> str | None:
        """The run whose child this process is."""
        return self.text("BAILIWICK_RUN")

    def key_passphrase(self) -> str | None:
        """The passphrase of a signing key."""
        return self.text("BAILIWICK_KEY_PASSPHRASE")

    def editor(self) -> str | None:
        """The person's editor, as a command line."""
        return self.text("VISUAL") or self.text("EDITOR")

    def child_environment(self, ours: Mapping[str, str], secret_names: Iterable[str] = ()) -> dict[str, str]:
        """The operator's variables for a script, without our variables (but `ours` and the home) or `secret_names`."""
        dropped = SECRET_NAMES.union(secret_names)
        kept = {
            name: value
            for name, value in self._names.items()
            if name not in dropped and (not name.startswith(PREFIX) or name == "BAILIWICK_HOME")
        }
        return {**kept, **ours}


def child_environment(ours: Mapping[str, str], secret_names: Iterable[str] = ()) -> dict[str, str]:
    """The environment of this process for a script; see `Environment.child_environment`."""
    return Environment().child_environment(ours, secret_names)
