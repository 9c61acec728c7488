"""Where the files are that come with the package: templates, workflows, prompts, skills."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BUNDLED_FILES: Final = Path(__file__).parent.resolve() / "bundled"
