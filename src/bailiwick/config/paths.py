"""Where files live: the XDG directories, or everything below BAILIWICK_HOME."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady, Place

MACHINE = Path("/etc/bailiwick")
PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class Paths:
    """The directories of a person on a machine; none of them need exist."""

    config: Path
    state: Path
    cache: Path
    run: Path
    machine: Path = MACHINE

    @property
    def policy_file(self) -> Path:
        """The organisation's floors and ceilings."""
        return self.machine / "policy.yaml"

    @property
    def machine_file(self) -> Path:
        """The machine's configuration."""
        return self.machine / "config.yaml"

    @property
    def person_file(self) -> Path:
        """The person's configuration."""
        return self.config / "config.yaml"

    @property
    def runs(self) -> Path:
        """Where run directories are written if nothing else is configured; ask `Config.runs_dir`."""
        return self.state / "runs"

    def repository_file(self, host: str, owner: str, name: str) -> Path:
        """The person's word on one repository."""
        return self.config / "repos" / host / owner / f"{name}.yaml"

    def make_state(self) -> Path:
        """The state directory, there and closed to others from now on."""
        return make_private(self.state)


def make_private(directory: Path) -> Path:
    """Make a directory that only its owner can enter, or close one that others can."""
    try:
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if stat.S_IMODE(directory.stat().st_mode) != PRIVATE:
            directory.chmod(PRIVATE)
    except OSError as error:
        raise NotReady(
            f"the directory can't be made private: {error.strerror}",
            place=Place(str(directory)),
            hint="make it writable for this user, or set BAILIWICK_HOME to another directory",
            code="BW210",
        ) from error
    return directory


def find_paths(environment: Environment | None = None, machine: Path | None = None) -> Paths:
    """The directories as the environment sets them. Makes and reads nothing."""
    env = environment or Environment()
    machine = machine or MACHINE
    base = env.text("BAILIWICK_HOME")
    if base:
        root = Path(base).expanduser().absolute()
        return Paths(root / "config", state=root / "state", cache=root / "cache", run=root / "run", machine=machine)
    home = env.home()
    state = (env.directory("XDG_STATE_HOME") or home / ".local" / "state") / "bailiwick"
    runtime = env.directory("XDG_RUNTIME_DIR")
    return Paths(
        config=(env.directory("XDG_CONFIG_HOME") or home / ".config") / "bailiwick",
        state=state,
        cache=(env.directory("XDG_CACHE_HOME") or home / ".cache") / "bailiwick",
        run=runtime / "bailiwick" if runtime else state / "run",
        machine=machine,
    )
