"""Settings that have a name and no reader in this version: refused by name, so that nobody relies on what isn't there.

Whoever builds one moves its name from here into `keys.py`, with the probe that `tests/unit/config` asks for.
"""

from __future__ import annotations

from bailiwick.config.variables import PREFIX
from bailiwick.errors import Place
from bailiwick.lang.fields import Findings

NOT_YET = "BW225"

PLANNED = {
    "database": "the journal is always the SQLite file in the state directory",
    "host_grace": "runs stay on the machine they began on",
    "log": "what a command has to say goes to standard error, and what a run did is in `bailiwick runs logs`",
    "approvals": "questions are answered with `bailiwick runs answer`",
    "approvers": "questions are answered with `bailiwick runs answer`",
    "notify": "look with `bailiwick status --watch`, or wait with `bailiwick runs wait RUN`",
    "service.login": "clients of the service use tokens: `bailiwick serve token add NAME`",
    "secrets.vault": "secrets come from the environment or from a file: secrets.provider, secrets.file",
    "repositories": "give the repository to each command: --repo DIR",
    "builder": "the idea builder is not there yet",
    "features.builder": "there is nothing to switch off",
    "features.promote": "there is nothing to switch off",
    "features.sessions": "there is nothing to switch off",
    "features.notify": "there is nothing to switch off",
    "features.supervision": "there is nothing to switch off",
}
"""Keys and sections of the documented configuration, each with what holds instead."""

PLANNED_VALUES = {
    ("secrets.provider", "vault"): "write environment or file",
    ("forges.*.type", "gitlab"): "write github, gitea or forgejo",
}
"""Values of keys that are read, each with what to write instead."""

_OTHER_VARIABLES = {f"{PREFIX}DB": "database"}


def planned_name(name: str) -> str | None:
    """The key or section of `PLANNED` that a full name is, or stands below."""
    parts = name.split(".")
    wholes = (".".join(parts[: length + 1]) for length in range(len(parts)))
    return next((whole for whole in wholes if whole in PLANNED), None)


def planned_variable(variable: str) -> str | None:
    """The key or section of `PLANNED` that a variable would set."""
    for name in PLANNED:
        made = PREFIX + name.replace(".", "_").upper()
        if variable == made or variable.startswith(f"{made}_"):
            return name
    return _OTHER_VARIABLES.get(variable)


def refuse(name: str, place: Place, found: Findings) -> None:
    """Note that a setting is not in this version yet; `name` is in `PLANNED`."""
    found.error(NOT_YET, f"{name} is not in this version yet", place, f"remove it; {PLANNED[name]}")


def refuse_value(key: str, value: object, place: Place, found: Findings) -> bool:
    """Note a value that is not in this version yet; False where the key may have this value."""
    instead = PLANNED_VALUES.get((key, str(value)))
    if instead is None:
        return False
    found.error(NOT_YET, f"{key.replace('*', 'NAME')}: {value} is not in this version yet", place, instead)
    return True
