"""Whether a part of the service is switched on."""

from __future__ import annotations

from bailiwick.config.service import Config
from bailiwick.errors import NotReady

OFF = "BW607"


def require_feature(config: Config, name: str) -> None:
    """Raise `NotReady` where a part is switched off."""
    if not config.get(f"features.{name}"):
        what = f"features.{name} is off ({config.origin(f'features.{name}')})"
        raise NotReady(what, hint=f"the person who set it can change it: features.{name}: true", code=OFF)
