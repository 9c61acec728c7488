"""The command. `--version` is answered before anything is imported; everything else goes to the lazy command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        from bailiwick import __version__

        sys.stdout.write(f"bailiwick {__version__}\n")
        return
    from bailiwick.cli.root import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
