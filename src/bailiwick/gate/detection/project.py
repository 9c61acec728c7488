"""A Python project as its files describe it: how it is built, what it can bring along, how its tests are configured."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bailiwick.gate.detection.reading import (
    SetupPy,
    dig,
    ini_of,
    lines_of,
    normal,
    sections,
    strings,
    table,
    text_of,
    toml_of,
)

_DYNAMIC = {
    "setuptools-scm": "setuptools-scm",
    "hatch-vcs": "hatch-vcs",
    "flit-scm": "hatch-vcs",
    "vcs-versioning": "hatch-vcs",
    "pbr": "pbr",
    "versioningit": "tag",
    "setuptools-git-versioning": "tag",
    "poetry-dynamic-versioning": "poetry-dynamic",
    "versioneer": "tag",
}
"""Build requirements that take the version from git, and by which variables they can be told."""


@dataclass(frozen=True, slots=True)
class PytestSettings:
    """What is configured for pytest."""

    addopts: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    testpaths: tuple[str, ...] = ()
    required_plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """What the files of a project say. `extras` and `groups` map their names to requirements."""

    name: str = ""
    version: str = ""
    installable: bool = False
    backend: str = ""
    build_requires: tuple[str, ...] = ()
    requires_python: str = ""
    pythons: tuple[str, ...] = ()
    """The minor versions that classifiers list, such as `3.12`."""
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tests_require: tuple[str, ...] = ()
    version_from: str = ""
    """How a version from git can be given: setuptools-scm, hatch-vcs, pbr, pdm, poetry-dynamic, tag; else empty."""
    pytest: PytestSettings = field(default_factory=PytestSettings)

    @property
    def compiled(self) -> bool:
        """Whether an editable install builds again at import, and so needs its build tools in the environment."""
        names = " ".join((self.backend, *self.build_requires))
        return "mesonpy" in names or "scikit_build_core" in names or "scikit-build-core" in names


def read_project(texts: Mapping[str, bytes], files: frozenset[str]) -> Project:
    """Read pyproject.toml, setup.cfg, setup.py and the settings of pytest."""
    document = toml_of(texts, "pyproject.toml")
    cfg = sections(ini_of(texts, "setup.cfg"))
    called = SetupPy(text_of(texts, "setup.py")).arguments
    told = table(document.get("project"))
    poetry = table(dig(document, "tool", "poetry"))
    build = table(document.get("build-system"))
    requires = (*strings(build.get("requires")), *strings(called.get("setup_requires")))
    options = cfg.get("options", {})
    metadata = cfg.get("metadata", {})
    classifiers = (
        *strings(told.get("classifiers")),
        *strings(poetry.get("classifiers")),
        *lines_of(metadata.get("classifiers", "") or metadata.get("classifier", "")),
        *strings(called.get("classifiers")),
    )
    packaged = bool(told or poetry or build) or "setup.py" in files or bool(metadata.get("name"))
    return Project(
        name=_first_text(told.get("name"), poetry.get("name"), metadata.get("name"), called.get("name")),
        version=_first_text(told.get("version"), poetry.get("version"), metadata.get("version"), called.get("version")),
        installable=packaged and not _is_virtual(document),
        backend=str(build.get("build-backend") or ""),
        build_requires=requires,
        requires_python=_python_range(told, poetry, options, called),
        pythons=tuple(re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))),
        extras=_extras(told, poetry, cfg, called),
        groups=_groups(document, poetry),
        tests_require=(*lines_of(options.get("tests_require", "")), *strings(called.get("tests_require"))),
        version_from=_version_source(document, cfg, called, requires),
        pytest=read_pytest(texts, document, cfg),
    )


def _first_text(*values: object) -> str:
    for value in values:
        if isinstance(value, str) and value.strip() and not value.startswith(("attr:", "file:")):
            return value.strip()
    return ""


def _is_virtual(document: dict[str, Any]) -> bool:
    """Whether the project says itself that it is only a list of dependencies."""
    return dig(document, "tool", "uv", "package") is False or dig(document, "tool", "poetry", "package-mode") is False


def _python_range(
    told: dict[str, Any], poetry: dict[str, Any], options: Mapping[str, str], called: Mapping[str, object]
) -> str:
    given = _first_text(told.get("requires-python"), options.get("python_requires"), called.get("python_requires"))
    wanted = dig(poetry, "dependencies", "python")
    return given or (poetry_range(wanted) if isinstance(wanted, str) else "")


def _extras(
    told: dict[str, Any], poetry: dict[str, Any], cfg: Mapping[str, Mapping[str, str]], called: Mapping[str, object]
) -> dict[str, tuple[str, ...]]:
    found = {str(name): strings(value) for name, value in table(told.get("optional-dependencies")).items()}
    found |= {str(name): strings(value) for name, value in table(poetry.get("extras")).items()}
    found |= {name: lines_of(value) for name, value in cfg.get("options.extras_require", {}).items()}
    found |= {str(name): strings(value) for name, value in table(called.get("extras_require")).items()}
    return {name: value for name, value in found.items() if ":" not in name}


def _groups(document: dict[str, Any], poetry: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Dependency groups of every tool, with what they include."""
    raw = table(document.get("dependency-groups"))
    found = {normal(name): flatten_group(raw, name) for name in raw}
    for name, value in table(dig(document, "tool", "pdm", "dev-dependencies")).items():
        found[normal(name)] = (*found.get(normal(name), ()), *strings(value))
    if uv := strings(dig(document, "tool", "uv", "dev-dependencies")):
        found["dev"] = (*found.get("dev", ()), *uv)
    if old := table(poetry.get("dev-dependencies")):
        found["dev"] = (*found.get("dev", ()), *poetry_requirements(old))
    for name, group in table(poetry.get("group")).items():
        listed = poetry_requirements(table(dig(group, "dependencies")))
        found[normal(name)] = (*found.get(normal(name), ()), *listed)
    return found


def flatten_group(groups: Mapping[str, Any], name: str, depth: int = 0) -> tuple[str, ...]:
    """The requirements of a group, those of the groups that it includes among them."""
    known = {normal(key): value for key, value in groups.items()}
    out: list[str] = []
    entries = known.get(normal(name))
    for entry in entries if isinstance(entries, list) and depth < len(groups) + 1 else ():
        if isinstance(entry, str):
            out.append(entry)
        elif isinstance(entry, dict) and isinstance(entry.get("include-group"), str):
            out += flatten_group(groups, entry["include-group"], depth + 1)
    return tuple(out)


def poetry_requirements(table_of: Mapping[str, Any]) -> tuple[str, ...]:
    """Poetry's table of dependencies as requirements that every installer reads."""
    out = []
    for name, value in table_of.items():
        given = value[-1] if isinstance(value, list) and value else value
        if name == "python" or (isinstance(given, dict) and ("git" in given or "path" in given or "url" in given)):
            continue
        version = given.get("version", "*") if isinstance(given, dict) else given
        extras = strings(given.get("extras")) if isinstance(given, dict) else ()
        marker = str(given.get("markers", "")) if isinstance(given, dict) else ""
        text = f"{name}{'[' + ','.join(extras) + ']' if extras else ''}{poetry_range(str(version))}"
        out.append(f"{text} ; {marker}" if marker else text)
    return tuple(out)


def poetry_range(text: str) -> str:
    """A version constraint of poetry as other tools write it: `^1.2` is `>=1.2,<2`."""
    parts = [part.strip() for part in text.rsplit("||", maxsplit=1)[-1].split(",")]
    return ",".join(filter(None, (_poetry_part(part) for part in parts)))


def _poetry_part(part: str) -> str:
    if part in ("", "*"):
        return ""
    bare = part.lstrip("^~= ").strip()
    numbers = [int(number) for number in re.findall(r"\d+", bare)[:3]] or [0]
    if part.startswith("^"):
        index = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
        upper = [*numbers[:index], numbers[index] + 1]
        return f">={bare},<{'.'.join(map(str, upper))}"
    if part.startswith("~") and not part.startswith("~="):
        upper = [*numbers[:1], numbers[1] + 1] if len(numbers) > 1 else [numbers[0] + 1]
        return f">={bare},<{'.'.join(map(str, upper))}"
    return f"=={part}" if part[0].isdigit() else part.replace(" ", "")


def _version_source(
    document: dict[str, Any],
    cfg: Mapping[str, Mapping[str, str]],
    called: Mapping[str, object],
    requires: tuple[str, ...],
) -> str:
    """By what the version is told that comes from git."""
    if dig(document, "tool", "pdm", "version", "source") == "scm":
        return "pdm"
    static = _first_text(dig(document, "project", "version"), dig(document, "tool", "poetry", "version"))
    names = [normal(re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0]) for text in requires if text.strip()]
    if called.get("use_scm_version") or dig(document, "tool", "setuptools_scm") is not None:
        names.append("setuptools-scm")
    if called.get("pbr"):
        names.append("pbr")
    for name in names:
        kind = _DYNAMIC.get(name, "")
        if kind == "poetry-dynamic" or (kind and not static):
            return kind
    return ""


def read_pytest(
    texts: Mapping[str, bytes], document: dict[str, Any], cfg: Mapping[str, Mapping[str, str]]
) -> PytestSettings:
    """The settings of pytest, from the first file that has some, in pytest's own order."""
    for path in ("pytest.ini", ".pytest.ini"):
        if path in texts:
            return _settings(sections(ini_of(texts, path)).get("pytest", {}))
    for path in ("pytest.toml", ".pytest.toml"):
        if path in texts:
            return _settings(_flat(table(toml_of(texts, path).get("pytest"))))
    found = dig(document, "tool", "pytest", "ini_options")
    native = {key: value for key, value in table(dig(document, "tool", "pytest")).items() if key != "ini_options"}
    if isinstance(found, dict) or native:
        return _settings(_flat({**native, **table(found)}))
    tox = sections(ini_of(texts, "tox.ini"))
    for section in (tox.get("pytest"), cfg.get("tool:pytest")):
        if section is not None:
            return _settings(section)
    return PytestSettings()


def _flat(document: Mapping[str, Any]) -> dict[str, str]:
    return {key: " ".join(strings(value)) if isinstance(value, list) else str(value) for key, value in document.items()}


def _settings(section: Mapping[str, str]) -> PytestSettings:
    try:
        words = shlex.split(section.get("addopts", ""), comments=True)
    except ValueError:
        words = section.get("addopts", "").split()
    return PytestSettings(
        addopts=tuple(words),
        keys=dict(section),
        testpaths=tuple(section.get("testpaths", "").split()),
        required_plugins=tuple(
            re.findall(
                r"[A-Za-z0-9_.-]+(?:[<>=!~]=?[\w.*]+(?:,[<>=!~]=?[\w.*]+)*)?", section.get("required_plugins", "")
            )
        ),
    )
