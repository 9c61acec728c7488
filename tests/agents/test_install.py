"""`tools/agents` puts the CLIs where tests find them, in the versions the backends were written for."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.desk import AGENTS, CliUnderTest

TOOLS = ("sh", "cat", "cut", "dirname", "du", "grep", "ldd", "ln", "mkdir", "rm", "tail", "uname")
NPM = """\
#!/bin/sh
echo "$*" >>"{folder}/calls"
while [ "$1" != --prefix ]; do shift; done
for spec; do :; done
package=${{spec%@*}}
case $package in
    *npm:*) package=${{package%@npm:*}} inside=vendor/x/bin/codex ;;
    *claude*) inside=claude ;;
    *) inside=copilot ;;
esac
binary=$2/node_modules/$package/$inside
mkdir -p "${{binary%/*}}"
printf '#!/bin/sh\\necho 1.2.3\\n' >"$binary"
chmod +x "$binary"
"""


def _place(tmp_path: Path, npm: str = "") -> Path:
    """A repository with nothing but the script, on a machine with few programs."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(AGENTS.parent / "tools" / "agents", tmp_path / "tools")
    for name in (*TOOLS, "chmod"):
        found = shutil.which(name)
        assert found, name
        (tmp_path / "bin" / name).symlink_to(found)
    if npm:
        (tmp_path / "bin" / "npm").write_text(npm.format(folder=tmp_path))
        (tmp_path / "bin" / "npm").chmod(0o755)
    return tmp_path


def _install(place: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(place / "bin"), "HOME": str(place)}
    command = [place / "tools" / "agents"]
    return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False, timeout=600)


def test_without_npm_it_says_what_is_missing_and_goes_on(tmp_path: Path) -> None:
    """Whoever doesn't work on agents needs no Node."""
    done = _install(_place(tmp_path))
    assert done.returncode == 0
    assert "npm is missing" in done.stderr
    assert not (tmp_path / ".agents").exists()


def test_each_cli_is_put_once_under_its_name(tmp_path: Path) -> None:
    """The second time nothing is fetched; what is executed is the binary itself, not a wrapper."""
    place = _place(tmp_path, NPM)
    first, second = _install(place), _install(place)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    calls = (place / "calls").read_text().splitlines()
    assert len(calls) == 3
    assert all("--ignore-scripts" in call for call in calls)
    bin_folder = place / ".agents" / "bin"
    assert sorted(link.name for link in bin_folder.iterdir()) == ["claude", "codex", "copilot"]
    assert all(subprocess.check_output([link], text=True) == "1.2.3\n" for link in bin_folder.iterdir())


def test_what_npm_says_of_a_failure_is_passed_on(tmp_path: Path) -> None:
    """No half installed CLI is ever found by a test."""
    done = _install(_place(tmp_path, "#!/bin/sh\necho the registry is out >&2\nexit 1\n"))
    assert done.returncode == 1
    assert done.stderr.count("the registry is out") == 3
    assert list((tmp_path / ".agents" / "bin").iterdir()) == []


@pytest.mark.parametrize("cli", ["claude", "codex", "copilot"])
def test_the_installed_version_is_the_tested_one(turns: Callable[[str], CliUnderTest], cli: str) -> None:
    """The pin here and the version that a backend names as tested must not drift apart."""
    works, words = turns(cli).check()
    assert works, words
    assert "untested" not in words
