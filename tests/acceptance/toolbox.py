"""A Python with pytest outside of any work tree: the gate takes no tools from a repository, not even from ours."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

PLACE = "/var/tmp"
"""Where the tools are made: /tmp is another one in every sandbox."""
PARTS = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")


def make_python(folder: Path) -> Path:
    """A virtual environment with pytest copied from ours, without a network; gives its directory of programs."""
    venv.EnvBuilder(symlinks=True).create(folder)
    here = Path(sysconfig.get_paths()["purelib"])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    there = folder / "lib" / version / "site-packages"
    for name in PARTS:
        for file in distribution(name).files or ():
            source = here / file
            if ".." not in file.parts and source.is_file() and source.suffix != ".pyc":
                (there / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, there / file)
    return folder / "bin"


@pytest.fixture(scope="module", autouse=True)
def python_with_pytest() -> Iterator[None]:
    """The first Python on the PATH has pytest, for every command that the module runs."""
    made = tempfile.TemporaryDirectory(prefix="bailiwick-tools-", dir=PLACE)
    with made as folder, pytest.MonkeyPatch.context() as patch:
        programs = make_python(Path(folder) / "python")
        patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        yield
