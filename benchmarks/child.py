"""One part of a figure, alone in its process: `python -m benchmarks.child FIGURE PART FOLDER SIZES`."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Reading


def main() -> None:
    """Measure and print the reading as the last line of standard output."""
    figure, name, folder, sizes = sys.argv[1:]
    parts: dict[str, Callable[..., Reading]] = importlib.import_module(f"benchmarks.{figure}").PARTS
    reading = parts[name](Path(folder), **json.loads(sizes))
    sys.stdout.write(f"\n{json.dumps(reading)}\n")


if __name__ == "__main__":
    main()
