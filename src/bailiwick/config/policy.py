"""The organisation's policy and the limits that hold here, as one digest: what was decided under it can be compared.

The digest is over the bytes of the policy file and over every limit as all layers together make it, so it changes
whenever a limit does, whoever changed it.
"""

from __future__ import annotations

import os
from pathlib import Path

from bailiwick.config.files import policy_problems
from bailiwick.config.keys import find_key
from bailiwick.config.service import Config
from bailiwick.errors import InputInvalid, Place
from bailiwick.ids import canonical, digest


def policy_digest(config: Config) -> str:
    """The digest of the policy that holds here. Raises `InputInvalid` where its file can't be read or trusted."""
    data = _policy_bytes(config.paths.policy_file)
    known = ((find_key(name), name, value) for name, value in config.items())
    limits = {name: value for key, name, value in known if key is not None and key.rule is not None}
    return digest(canonical({"file": None if data is None else digest(data), "limits": limits}))


def _policy_bytes(file: Path) -> bytes | None:
    from bailiwick.lang.source import MAX_BYTES, read_bytes

    if not os.path.lexists(file):
        return None
    found = policy_problems(file)
    if found:
        raise InputInvalid(found)
    return read_bytes(file, Place(str(file)), MAX_BYTES)
