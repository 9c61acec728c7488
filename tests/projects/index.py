"""Fetches one source distribution from the index that pip is configured for:  python index.py NAME VERSION DIRECTORY

Run as a program of its own: tests reach loopback only. Prints the file, then the hosts that it came from. Exits with 3
where no index can be reached, which says nothing about us.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

UNREACHABLE = 3
SECONDS = 60


def index_url() -> str:
    """The index: of the variable, of pip's configuration, or the one that pip itself knows."""
    if given := os.environ.get("PIP_INDEX_URL"):
        return given
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    if told.returncode == 0 and told.stdout.strip():
        return told.stdout.strip()
    from pip._internal.models.index import PyPI  # type: ignore[import-not-found]

    return str(PyPI.simple_url)


def find(index: str, name: str, version: str) -> str:
    """The address of the source distribution."""
    page = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    with urllib.request.urlopen(page, timeout=SECONDS) as answer:
        text: str = answer.read().decode()
    pattern = re.compile(rf"{re.sub(r'[-_.]+', '[-_.]+', name)}-{re.escape(version)}\.tar\.gz", re.IGNORECASE)
    for address in re.findall(r'href="([^"#]+)', text):
        if pattern.fullmatch(urllib.parse.unquote(address.rpartition("/")[2])):
            return str(urllib.parse.urljoin(page, address))
    raise SystemExit(f"{page} has no source distribution of {version}")


def main(name: str, version: str, folder: Path) -> int:
    """Fetch it, unless it is there."""
    index = index_url()
    file = folder / f"{name}-{version}.tar.gz"
    note = file.with_suffix(".hosts")
    try:
        if not note.exists():
            address = find(index, name, version)
            part = folder / f".{name}-{version}-{os.getpid()}"
            with urllib.request.urlopen(address, timeout=SECONDS) as answer, part.open("wb") as out:
                shutil.copyfileobj(answer, out)
            part.replace(file)
            hosts = {urllib.parse.urlsplit(url).netloc.rpartition("@")[2] for url in (index, address)}
            note.write_text(" ".join(sorted(hosts)))
    except (urllib.error.URLError, TimeoutError) as error:
        sys.stderr.write(f"no index: {error}\n")
        return UNREACHABLE
    sys.stdout.write(f"{file}\n{note.read_text()}\n{index}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
