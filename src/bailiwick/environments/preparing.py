"""Makes an environment: runs `prepare` in a fresh checkout of the base and keeps what is new at the end."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.egress.hosts import AllowList, BadHost
from bailiwick.egress.proxy import EgressProxy
from bailiwick.environments import generated
from bailiwick.environments.recipes import CARGO_HOME, MISSING_COPY, VENVS, EnvironmentBuilder, Recipe, bin_folders
from bailiwick.environments.registries import REGISTRIES
from bailiwick.ids import canonical, digest
from bailiwick.processes.proc import plain_line
from bailiwick.removal import sweep
from bailiwick.sandbox.failures import EnvironmentFailed
from bailiwick.sandbox.spec import EGRESS_PORT, INNER
from bailiwick.sandbox.toolchains import install_hint, resolve_program

if TYPE_CHECKING:
    from bailiwick.processes.command import Exit
    from bailiwick.sandbox.service import Sandboxes
    from bailiwick.sandbox.spec import SandboxSpec

SECONDS = 30 * 60.0
"""How long one command of `prepare` may take."""
OUTPUT_KEPT = 16 * 1024
NONE = "none"
MADE = "made.json"

_INPUTS = frozenset({
    "uv.lock", "uv.toml", "pyproject.toml", "setup.py", "setup.cfg", "poetry.lock", "pdm.lock", "Pipfile",
    "Pipfile.lock", ".python-version", "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock",
    "pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc", ".yarnrc.yml", ".nvmrc", ".node-version", ".tool-versions",
    "go.mod", "go.sum", "go.work", "Cargo.toml", "Cargo.lock", "Gemfile", "Gemfile.lock", "composer.json",
    "composer.lock",
})  # fmt: skip
"""Files that say what an environment holds, wherever they are in the tree."""
_REQUIREMENTS = re.compile(r"(?:.*/)?(?:requirements|constraints)[^/]*\.(?:txt|in)|(?:.*/)?requirements/[^/]+\.txt")
_SOURCES = re.compile(
    r".*\.(?:c|cc|cpp|cxx|h|hh|hpp|pyx|pxd|pxi|rs|f|f90|po|proto|cmake|in|jinja2?|tmpl|asdl|g4)"
    r"|(?:.*/)?(?:meson\.build|meson_options\.txt|meson\.options|CMakeLists\.txt|MANIFEST\.in)"
)
"""Files that extensions and other generated files are built from."""
_TOOLS = ("python3", "node")


async def identify(recipe: Recipe, base: str, brought: Mapping[str, bytes], builder: EnvironmentBuilder) -> str:
    """The digest by which an environment is known: of lock files, commands and tools."""
    files = {entry.path: entry.id for entry in await builder.git_store.entries(base)}
    inputs = {path: name for path, name in files.items() if _is_input(path)}
    words = {word.removeprefix("./") for command in recipe.prepare for word in command}
    inputs |= {path: files[path] for path in words if path in files}
    if any("-e" in command or "--editable" in command for command in recipe.prepare):
        inputs |= {path: name for path, name in files.items() if _SOURCES.fullmatch(path)}
    if _installs_a_copy(recipe):
        inputs = files
    known = {
        "inputs": inputs if recipe.prepare else {},
        "prepare": [list(command) for command in recipe.prepare],
        "copy": {path: digest(data) for path, data in brought.items()},
        "tools": _tools(recipe, builder.sandboxes) if recipe.prepare else {},
        "at": str(INNER),
        "machine": platform.machine(),
        "mounted": builder.sandboxes.sandbox.name != NONE,
    }
    return digest(canonical(known))[:40]


def _is_input(path: str) -> bool:
    return path.rpartition("/")[2] in _INPUTS or _REQUIREMENTS.fullmatch(path) is not None


def _installs_a_copy(recipe: Recipe) -> bool:
    """Whether a copy of the repository's own code may end up in the environment: then all of it counts."""
    for command in recipe.prepare:
        plain = [
            word
            for previous, word in zip(("", *command), command, strict=False)
            if previous not in ("-e", "--editable")
        ]
        if "--no-editable" in command or any(word in (".", "./", ".[dev]", ".[test]") for word in plain):
            return True
        if any(word.startswith(".[") for word in plain):
            return True
    return False


def _tools(recipe: Recipe, sandboxes: Sandboxes) -> dict[str, list[str | int]]:
    """Which programs are used, told apart by where they really are and by what they are made of."""
    found: dict[str, list[str | int]] = {}
    for name in sorted({*_TOOLS, *map(program_of, recipe.prepare)}):
        program = resolve_program(name, sandboxes.toolchains)
        if program is not None:
            real = program.resolve()
            info = real.stat()
            found[name] = [str(real), info.st_size, info.st_mtime_ns]
    return found


def program_of(command: tuple[str, ...]) -> str:
    """The program that a command starts, behind the variables that `env` sets for it."""
    words = command
    if words[0] == "env":
        words = tuple(word for word in command[1:] if "=" not in word.partition("/")[0]) or command
    return words[0]


def bring(recipe: Recipe, person: Path) -> dict[str, bytes]:
    """The ignored files that the gate file lists, from the person's work tree; a missing one is an error."""
    out = {}
    for path in recipe.copy:
        source = person / path
        try:
            inside = source.resolve(strict=True).is_relative_to(person.resolve())
            if not inside or not source.is_file():
                raise FileNotFoundError(path)
            out[path] = source.read_bytes()
        except OSError:
            raise EnvironmentFailed(
                f"'{path}', which the gate file lists under `copy`, is not in the work tree",
                hint=f"make {person / path}, or take it off the list",
                code=MISSING_COPY,
            ) from None
    return out


async def make(
    recipe: Recipe, base: str, brought: Mapping[str, bytes], builder: EnvironmentBuilder, ready: Path
) -> None:
    """Make an environment under another name, and give it its own when it is complete: a crash leaves nothing half."""
    work = ready.with_name(f".new-{ready.name}-{secrets.token_hex(4)}")
    tree, kept = work / "tree", work / "made"
    kept.mkdir(parents=True, mode=0o755)
    try:
        names = [_keep_file(kept, path, data) for path, data in brought.items()]
        new = generated.GeneratedFiles()
        if recipe.prepare:
            await builder.git_store.checkout(base, tree)
            before = await asyncio.to_thread(generated.listing, tree)
            await asyncio.to_thread(generated.set_times, tree)
            await run_all(recipe, tree, builder, work)
            new = await asyncio.to_thread(generated.keep_new, tree, kept, before)
            names += new.mounted
            _check_interpreters(kept, names, builder.sandboxes)
        for folder in (tree, work / "home"):
            await asyncio.to_thread(sweep, folder)
        said = {
            "names": names,
            "copied": list(new.copied),
            "packages": await asyncio.to_thread(installed_packages, kept),
            "prepare": [list(command) for command in recipe.prepare],
            "at": builder.clock.now(),
        }
        await asyncio.to_thread(_write_durably, work / MADE, canonical(said).encode())
        work.rename(ready)
    finally:
        await asyncio.to_thread(sweep, work)


async def run_all(recipe: Recipe, tree: Path, builder: EnvironmentBuilder, work: Path | None = None) -> None:
    """Run the commands of a recipe in a tree; raises `EnvironmentFailed` at the first that fails."""
    refused: dict[str, str] = {}
    allow = _allowed(builder)
    for command in recipe.prepare:
        builder.show(f"preparing: {' '.join(command)}")
        egress = EgressProxy(allow, refused.__setitem__, builder.parent)
        sandbox_spec, env = _sandbox_spec(tree, builder, work)
        try:
            end = await builder.sandboxes.run(
                sandbox_spec, command, env=env, timeout=SECONDS, cancel=builder.cancel, egress=egress, keep=1 << 20
            )
        except FileNotFoundError:
            raise _missing(command[0]) from None
        finally:
            await egress.close()
        if end.code != 0 or end.timed_out:
            raise _failure(command, end, refused)


def _allowed(builder: EnvironmentBuilder) -> AllowList:
    """Public registries at public addresses; what the operator configured wherever it is."""
    try:
        return AllowList.of(builder.registries.hosts, REGISTRIES)
    except BadHost as error:
        raise EnvironmentFailed(
            f"a host that may be reached can't be read: {error}", hint="see sandbox.allow"
        ) from None


def _sandbox_spec(tree: Path, builder: EnvironmentBuilder, work: Path | None) -> tuple[SandboxSpec, dict[str, str]]:
    said = {**_PREPARING, **builder.registries.variables}
    made = bin_folders((), tree)
    if builder.sandboxes.sandbox.name == NONE or work is None:
        said["PATH"] = ":".join([*map(str, made), builder.sandboxes.toolchains.path])
        return builder.sandboxes.sandbox_spec("prepare", tree), builder.sandboxes.env(said)
    said["PATH"] = ":".join(
        [*(str(INNER / path.relative_to(tree)) for path in made), builder.sandboxes.toolchains.path]
    )
    home = work / "home"
    home.mkdir(exist_ok=True, mode=0o755)
    proxy = f"http://127.0.0.1:{EGRESS_PORT}"
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        said[name] = proxy
    said["CARGO_HOME"] = str(INNER / CARGO_HOME)
    sandbox_spec = builder.sandboxes.sandbox_spec(
        "prepare", tree, home=home, reads=builder.registries.binds, doors=("egress",)
    )
    return sandbox_spec, builder.sandboxes.env(said)


_PREPARING = {
    "UV_PYTHON_DOWNLOADS": "never", "UV_PYTHON_PREFERENCE": "only-system", "UV_LINK_MODE": "copy",
    "UV_COMPILE_BYTECODE": "1", "UV_NO_PROGRESS": "1", "POETRY_VIRTUALENVS_IN_PROJECT": "true", "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONNOUSERSITE": "1", "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "NPM_CONFIG_AUDIT": "false", "NPM_CONFIG_FUND": "false", "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw",
    "CI": "true", "PIPENV_VENV_IN_PROJECT": "1",
}  # fmt: skip
"""What tools are told while they prepare: interpreters are those of the operator, and nothing is linked to a cache."""


def _failure(command: tuple[str, ...], end: Exit, refused: Mapping[str, str]) -> EnvironmentFailed:
    if end.code == 127 and f"bailiwick-shim: {command[0]}: not found".encode() in end.stderr:
        return _missing(command[0])
    how = f"took longer than {SECONDS / 60:.0f} minutes" if end.timed_out else f"exits with {end.code}"
    raw = (end.stdout + b"\n" + end.stderr)[-OUTPUT_KEPT:]
    output = "\n".join(filter(None, (plain_line(line) for line in raw.splitlines())))
    hint = "repair it, or change `prepare` in the gate file; `bailiwick sandbox shell` shows the same sandbox"
    if refused:
        told = "; ".join(f"{host} ({why})" for host, why in sorted(refused.items())[:3])
        hint = f"not reached: {told}"
    return EnvironmentFailed(f"`{' '.join(command)}` {how}", hint=hint, output=output)


def _missing(program: str) -> EnvironmentFailed:
    return EnvironmentFailed(f"'{program}', which prepares the environment, is not here", hint=install_hint(program))


def _keep_file(kept: Path, path: str, data: bytes) -> str:
    target = kept / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(0o644)
    return path


def _check_interpreters(kept: Path, names: list[str], sandboxes: Sandboxes) -> None:
    """A virtual environment is of use only where its Python can be seen in the sandbox."""
    seen = ("/usr", "/bin", str(INNER), *(str(bind.target) for bind in sandboxes.toolchains.binds))
    for name in names:
        python = kept / name / "bin" / "python"
        if name.rpartition("/")[2] not in VENVS or not python.is_symlink():
            continue
        target = os.path.realpath(python)
        inside = target.startswith(str(kept)) or any(Path(target).is_relative_to(folder) for folder in seen)
        if not inside:
            raise EnvironmentFailed(
                f"the Python of {name} is {target}, which can't be seen in the sandbox",
                hint="put that Python's bin directory on your PATH",
            )


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


@dataclass(frozen=True, slots=True)
class EnvironmentContents:
    """What a complete environment holds: paths that are mounted, paths that are copied, and installed packages."""

    names: tuple[str, ...]
    copied: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


def read_made(ready: Path) -> EnvironmentContents | None:
    """What is in an environment that is complete; None where there is none."""
    try:
        data = json.loads((ready / MADE).read_bytes())
        return EnvironmentContents(*(tuple(map(str, data[key])) for key in ("names", "copied", "packages")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def installed_packages(made: Path) -> list[str]:
    """The packages of the virtual environments with their versions: the record of what was resolved."""
    found = []
    for name in VENVS:
        for entry in (made / name).glob("lib/python*/site-packages/*.dist-info"):
            package, _, version = entry.name.removesuffix(".dist-info").rpartition("-")
            found.append(f"{package}=={version}")
    return sorted(found, key=str.casefold)
