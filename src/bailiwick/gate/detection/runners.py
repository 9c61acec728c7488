"""What tox, nox, hatch and CI files install before they run tests, and how they run them. Pure."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bailiwick.gate.detection.reading import dig, ini_of, lines_of, sections, strings, table, text_of, toml_of, unique

_FACTORS = re.compile(r"^[\w.,{}!-]+:\s+(?=\S)|^[\w.,{}!-]+:(?=[A-Za-z-])")
_OLD = re.compile(r"(?:[\w.-]*-)?\{?(?:py(?:py)?(?:2\d?|3[3-7]),?)+\}?(?:-[\w.-]+)?:")
"""A line for old Pythons only."""
_NOT_TESTS = re.compile(
    r"lint|doc|type|typing|mypy|pyright|format|style|bench|build|release|publish|coverage|pre-commit"
)
_PIP = re.compile(r"(?:pip3?|uv pip|python3? -m pip) install\s+(.+)")
_VALUED = ("-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--python", "-t")


@dataclass(frozen=True, slots=True)
class Steps:
    """Requirements, extras, groups and requirements files of test environments, and the commands they run."""

    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()

    def plus(self, other: Steps) -> Steps:
        """Both together, each entry once."""
        return Steps(
            unique((*self.requirements, *other.requirements)),
            extras=unique((*self.extras, *other.extras)),
            groups=unique((*self.groups, *other.groups)),
            files=unique((*self.files, *other.files)),
            commands=tuple(dict.fromkeys((*self.commands, *other.commands))),
        )


def read_steps(texts: Mapping[str, bytes]) -> Steps:
    """What every runner of this project does for its tests."""
    found = _tox(texts).plus(_hatch(texts)).plus(_nox(texts))
    for path in sorted(texts):
        if path.startswith(".github/workflows/") or path == ".gitlab-ci.yml":
            found = found.plus(_shell(text_of(texts, path).splitlines()))
    return found


def _tox(texts: Mapping[str, bytes]) -> Steps:
    known = sections(ini_of(texts, "tox.ini"))
    legacy = dig(toml_of(texts, "pyproject.toml"), "tool", "tox", "legacy_tox_ini")
    if isinstance(legacy, str):
        known |= sections(ini_of({"tox.ini": legacy.encode()}, "tox.ini"))
    known |= {
        name.removeprefix("tox:"): values
        for name, values in sections(ini_of(texts, "setup.cfg")).items()
        if name.startswith("tox:testenv")
    }
    found = Steps()
    for name, values in known.items():
        kind = name.partition(":")[2]
        if not name.startswith("testenv") or _NOT_TESTS.search(kind):
            continue
        listed = [line for line in lines_of(values.get("deps", "")) if not _OLD.match(line)]
        deps = [_FACTORS.sub("", line) for line in listed]
        found = found.plus(install_words(word for line in deps for word in _dep(line)))
        extras = [_FACTORS.sub("", line) for line in lines_of(values.get("extras", "").replace(",", "\n"))]
        groups = lines_of(values.get("dependency_groups", "").replace(",", "\n"))
        commands = tuple(filter(None, (_command(line) for line in lines_of(values.get("commands", "")))))
        plain = tuple(extra for extra in extras if re.fullmatch(r"[\w.-]+", extra))
        found = found.plus(Steps(extras=plain, groups=groups, commands=commands))
    return found.plus(_tox_toml(texts))


def _tox_toml(texts: Mapping[str, bytes]) -> Steps:
    document = toml_of(texts, "tox.toml") or table(dig(toml_of(texts, "pyproject.toml"), "tool", "tox"))
    found = Steps()
    environments = {"": table(document.get("env_run_base")), **table(document.get("env"))}
    for name, values in environments.items():
        if not isinstance(values, dict) or _NOT_TESTS.search(name):
            continue
        found = found.plus(install_words(word for line in strings(values.get("deps")) for word in _dep(line)))
        found = found.plus(Steps(extras=strings(values.get("extras")), groups=strings(values.get("dependency_groups"))))
    return found


def _dep(line: str) -> list[str]:
    """One dependency of tox: a requirement is one word whatever it holds, an option and its value are two."""
    found = re.fullmatch(r"(-r|-c|--requirement|--constraint|-e)\s*(\S+)", line)
    if found:
        return [found[1], found[2].replace("{toxinidir}/", "").replace("{tox_root}/", "")]
    return [] if "{" in line else [line]


def install_words(words: Iterable[str]) -> Steps:
    """What the arguments of an installer ask for; constraints, indexes and the project itself are left out."""
    requirements, extras, files = [], [], []
    previous = ""
    for word in words:
        if previous in ("-r", "--requirement"):
            files.append(word.removeprefix("./"))
        elif found := re.fullmatch(r"\.?/?\.?\[([\w.,\s-]+)\]", word):
            extras += [extra.strip() for extra in found[1].split(",")]
        elif word.startswith("-r") and len(word) > 2:
            files.append(word[2:].removeprefix("./"))
        elif previous not in (*_VALUED, "-e", "--editable") and _is_requirement(word):
            requirements.append(word)
        previous = word
    return Steps(unique(requirements), unique(extras), (), unique(files))


def _is_requirement(word: str) -> bool:
    return re.match(r"[A-Za-z0-9][\w.-]*(?:\[[\w,.-]+\])?\s*(?:$|[<>=!~;(@ ])", word) is not None and not re.search(
        r"\.(?:txt|whl|gz|zip)$|[/$]", word
    )


def _command(line: str) -> tuple[str, ...]:
    """A test command as words; what tox puts into it is left out."""
    bare = re.sub(r"\{posargs:?[^}]*\}|\{envpython\}|\{[^}]*\}", "", _FACTORS.sub("", line))
    try:
        words = tuple(shlex.split(bare.lstrip("- ")))
    except ValueError:
        return ()
    runs = words and any(word in ("pytest", "py.test", "unittest", "runtests.py", "nose2", "trial") for word in words)
    return words if runs else ()


def _hatch(texts: Mapping[str, bytes]) -> Steps:
    environments = {
        **table(dig(toml_of(texts, "pyproject.toml"), "tool", "hatch", "envs")),
        **table(toml_of(texts, "hatch.toml").get("envs")),
    }
    found = Steps()
    for name, values in environments.items():
        if not isinstance(values, dict) or _NOT_TESTS.search(name):
            continue
        listed = (*strings(values.get("dependencies")), *strings(values.get("extra-dependencies")))
        groups = strings(values.get("dependency-groups"))
        found = found.plus(Steps(listed, strings(values.get("features")), groups))
    return found


def _nox(texts: Mapping[str, bytes]) -> Steps:
    try:
        module = ast.parse(text_of(texts, "noxfile.py"))
    except (SyntaxError, ValueError, RecursionError):
        return Steps()
    found = Steps()
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef) and not _NOT_TESTS.search(function.name):
            for words, verb in _session_calls(function):
                if verb == "install":
                    found = found.plus(install_words(words))
                elif command := _command(shlex.join(words)):
                    found = found.plus(Steps(commands=(command,)))
    return found


def _session_calls(function: ast.FunctionDef) -> Iterator[tuple[list[str], str]]:
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("install", "run"):
            words = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            yield words, call.func.attr


def _shell(lines: Iterable[str]) -> Steps:
    """What the steps of a CI file install and run, line by line."""
    found = Steps()
    for line in lines:
        text = re.sub(r"^\s*-?\s*(?:run:\s*)?", "", line).strip().strip("\"'")
        for part in re.split(r"&&|;|\|\|", text):
            installs = _PIP.search(part)
            try:
                words = shlex.split(installs[1]) if installs else []
            except ValueError:
                continue
            found = found.plus(install_words(words))
            if not installs and "pytest" in part and (command := _command(part.strip())):
                found = found.plus(Steps(commands=(command,)))
    return found
