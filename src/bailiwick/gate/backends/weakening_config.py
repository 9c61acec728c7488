"""Settings of test runners, linters, type checkers and coverage: those that a change relaxes."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from bailiwick.gate.model import Finding
from bailiwick.ids import Json

Flat = dict[tuple[str, ...], Json]
Rule = Literal["floor", "grow", "shrink", "on", "off", "words", "level"]
"""What may not happen: a number sinks, a list grows, a list shrinks, a switch goes off, a switch goes on, a command
gets or loses words that count, a rule is turned down."""

_RULES: tuple[tuple[str, Rule], ...] = (
    (r"tool/coverage/report/fail_under", "floor"),
    (r"tool/coverage/(?:run|report)/(?:omit|exclude_lines|exclude_also)", "grow"),
    (r"tool/coverage/run/(?:source|include)", "shrink"),
    (r"tool/coverage/run/branch", "on"),
    (r"tool/ruff/(?:lint/)?(?:extend-)?(?:select|safe-fixes)", "shrink"),
    (r"tool/ruff/(?:lint/)?(?:extend-)?(?:ignore|exclude)", "grow"),
    (r"tool/ruff/(?:lint/)?(?:extend-)?per-file-ignores/.*", "grow"),
    (r"tool/ruff/lint/(?:mccabe|pylint)/max-.*", "off"),
    (r"flake8/(?:extend-)?(?:ignore|exclude|per-file-ignores)", "grow"),
    (r"flake8/(?:extend-)?select", "shrink"),
    (
        r"tool/mypy/(?:overrides/.*/)?(?:strict|strict_.*|disallow_.*|warn_.*|check_.*|no_implicit_.*|extra_checks)",
        "on",
    ),
    (r"tool/mypy/(?:overrides/.*/)?(?:ignore_.*|allow_.*|implicit_.*|follow_untyped_imports)", "off"),
    (r"tool/mypy/(?:overrides/.*/)?(?:exclude|disable_error_code|module)", "grow"),
    (r"tool/mypy/(?:overrides/.*/)?(?:files|packages|enable_error_code)", "shrink"),
    (r"tool/(?:based)?pyright/(?:.*)", "level"),
    (r"tool/bandit/(?:skips|exclude_dirs|exclude)", "grow"),
    (r"tool/pytest/(?:ini_options/)?(?:addopts)", "words"),
    (
        r"tool/pytest/(?:ini_options/)?(?:filterwarnings|testpaths|required_plugins|python_files|python_functions)",
        "shrink",
    ),
    (r"tool/pytest/(?:ini_options/)?(?:norecursedirs|collect_ignore)", "grow"),
    (r"tool/pytest/(?:ini_options/)?(?:xfail_strict|strict.*)", "on"),
    (r"tool/interrogate/fail-under|tool/pylint/.*fail-under", "floor"),
    (r"tool/pylint/.*/disable", "grow"),
    (r"ts/compilerOptions/(?:strict.*|no(?!Emit|Resolve|Lib|Check).*|exactOptional.*|alwaysStrict)", "on"),
    (r"ts/compilerOptions/(?:skipLibCheck|allowJs|noCheck|suppress.*|allowUn.*)", "off"),
    (r"ts/exclude", "grow"),
    (r"ts/(?:include|files)", "shrink"),
    (r"package/scripts/(?:(?:pre|post)?(?:test|lint|check|typecheck|coverage|ci)(?::.*)?)", "words"),
    (r"package/(?:jest/)?coverageThreshold/.*|package/(?:nyc|c8)/(?:lines|branches|functions|statements)", "floor"),
    (r"package/jest/(?:testPathIgnorePatterns|coveragePathIgnorePatterns|modulePathIgnorePatterns)", "grow"),
    (r"(?:package/eslintConfig|eslint)/(?:.*/)?rules/.*|biome/(?:.*/)?rules/.*", "level"),
    (r"(?:package/eslintConfig|eslint)/ignorePatterns", "grow"),
)
_INI = {
    "pytest": "tool/pytest", "tool:pytest": "tool/pytest", "mypy": "tool/mypy", "flake8": "flake8",
    "coverage:report": "tool/coverage/report", "coverage:run": "tool/coverage/run", "run": "tool/coverage/run",
    "report": "tool/coverage/report", "bandit": "tool/bandit",
}  # fmt: skip
_INI_FILES = (
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    ".pytest.ini",
    "mypy.ini",
    ".mypy.ini",
    ".coveragerc",
    ".flake8",
    ".bandit",
)
_JSON_FILES = {"package.json": "package", ".eslintrc": "eslint", ".eslintrc.json": "eslint", "biome.json": "biome"}
_TOML_FILES = {
    "pyproject.toml": (), "ruff.toml": ("tool", "ruff"), ".ruff.toml": ("tool", "ruff"), ".coveragerc.toml": (),
    "pytest.toml": ("tool",), ".pytest.toml": ("tool",),
}  # fmt: skip
_TSCONFIG = re.compile(r"[tj]sconfig[^/]*\.json")
_LEVELS = {"off": 0, "none": 0, "false": 0, "0": 0, "basic": 1, "warn": 1, "warning": 1, "information": 1, "1": 1,
           "standard": 2, "error": 2, "2": 2, "true": 2, "strict": 3}  # fmt: skip
_LEAVES_OUT = re.compile(
    r"--(?:ignore|deselect|ignore-glob|passWithNoTests|exit-zero|no-cov|testPathIgnorePatterns|bail|no-verify)\b|^-[km]\b"
    r"|^no:|^-p$|^\|\|$|^true;?$|^exit$|^echo$"
)
_DEMANDS = re.compile(r"--(?:strict|cov|fail-under|max-warnings|coverage|ci)|^-W|^error")
_LIMIT = re.compile(r"--(?:cov-)?fail-under=?(\d+(?:\.\d+)?)?")


def is_config(path: str) -> bool:
    """Whether a file holds settings that are understood here."""
    name = path.rpartition("/")[2]
    return name in _INI_FILES or name in _JSON_FILES or name in _TOML_FILES or bool(_TSCONFIG.fullmatch(name))


def config_findings(path: str, old: str, new: str) -> list[Finding]:
    """Settings that say less than they did."""
    before, after = _read(path, old), _read(path, new)
    if before is None or after is None:
        return []
    found = []
    for key in sorted(before.keys() | after.keys()):
        rule = next((rule for pattern, rule in _RULES if re.fullmatch(pattern, "/".join(key))), None)
        was, now = before.get(key), after.get(key)
        if rule is None or was == now:
            continue
        why = _relaxed(rule, was, now)
        if why:
            name = ".".join(key)
            found.append(Finding("setting-relaxed", f"{name}: {why}", path, _line(new, key[-1]), blocks=False))
    return found


def _line(text: str, key: str) -> int:
    """The first line on which a key stands, as near as text can tell; 0 where it does not."""
    return next((number for number, line in enumerate(text.splitlines(), 1) if key in line), 0)


def _read(path: str, text: str) -> Flat | None:
    """The settings of a file by their paths; None for one that can't be read."""
    name = path.rpartition("/")[2]
    try:
        if name in _TOML_FILES:
            import tomllib

            return dict(_flat((*_TOML_FILES[name],), tomllib.loads(text)))
        if name in _INI_FILES:
            return dict(_ini(text))
        top = "ts" if _TSCONFIG.fullmatch(name) else _JSON_FILES[name]
        return dict(_flat((top,), json.loads(_plain_json(text) or "{}")))
    except (ValueError, RecursionError, configparser.Error):
        return None


def _flat(prefix: tuple[str, ...], value: Json) -> Iterator[tuple[tuple[str, ...], Json]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat((*prefix, str(key)), inner)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _flat((*prefix, _label(item, index)), item)
    else:
        yield prefix, value


def _label(item: Mapping[str, Json], index: int) -> str:
    """The name of a table in a list, so that one that moved is the same."""
    module = item.get("module", index)
    return ",".join(map(str, module)) if isinstance(module, list) else str(module)


def _ini(text: str) -> Iterator[tuple[tuple[str, ...], Json]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    for section in parser.sections():
        head, _, module = section.partition("-")
        place = _INI.get(section) or (f"tool/mypy/overrides/{module}" if head == "mypy" and module else "")
        for key, value in parser.items(section) if place else ():
            yield (*place.split("/"), key), _ini_value(key, value or "")


def _ini_value(key: str, value: str) -> Json:
    if value.strip().casefold() in ("true", "yes", "on", "false", "no", "off"):
        return value.strip().casefold() in ("true", "yes", "on")
    if re.fullmatch(r"\d+(?:\.\d+)?", value.strip()):
        return float(value)
    if key == "addopts":
        return value
    return [part for part in re.split(r"[,\s]+" if "\n" not in value else r"\n|,", value) if part.strip()]


def _plain_json(text: str) -> str:
    """JSON without the comments and last commas that tools allow; what is quoted stays as it is."""
    kept = re.sub(r'("(?:\\.|[^"\\])*+")|//[^\n]*|/\*.*?(?:\*/|\Z)', lambda m: m[1] or " ", text, flags=re.DOTALL)
    return re.sub(r'("(?:\\.|[^"\\])*+")|,(?=\s*[}\]])', lambda m: m[1] or "", kept)


def _relaxed(rule: Rule, was: Json, now: Json) -> str:
    """Why a new value says less than the old one; empty where it does not."""
    match rule:
        case "floor":
            low = _number(now)
            return f"lowered from {was} to {now if now is not None else 'nothing'}" if _number(was) > low else ""
        case "grow":
            more = [item for item in _items(now) if item not in _items(was)]
            return f"grew by {', '.join(more[:5])}" if more else ""
        case "shrink":
            less = [item for item in _items(was) if item not in _items(now) and "ALL" not in _items(now)]
            return f"lost {', '.join(less[:5])}" if less else ""
        case "on":
            return "switched off" if was is True and now is not True else ""
        case "off":
            loose = now is True or (isinstance(now, int | float) and _number(now) > _number(was) and was is not None)
            return f"was {was}, is {now}" if loose else ""
        case "level":
            return f"turned down from {_named(was)} to {_named(now)}" if _level(now) < _level(was) else ""
        case "words":
            return _command(_words(was), _words(now))


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _items(value: Json) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _level(value: Json) -> int:
    """How strict a rule is; what says nothing is as strict as can be, so that only turning down counts."""
    if isinstance(value, list):
        value = value[0] if value else None
    return 3 if value is None else _LEVELS.get(str(value).casefold(), 3)


def _named(value: Json) -> str:
    return json.dumps(value)[:80]


def _words(value: Json) -> list[str]:
    return [word for item in _items(value) for word in item.split()]


def _command(was: list[str], now: list[str]) -> str:
    added = [word for word in now if word not in was]
    lost = [word for word in was if word not in now]
    if was and not now:
        return "removed"
    if [w for w in added if _LEAVES_OUT.search(w)]:
        return f"leaves more out or ignores failures: {' '.join(added)[:120]}"
    if [w for w in lost if _DEMANDS.search(w)] and not _is_higher(was, now):
        return f"demands less: without {' '.join(lost)[:120]}"
    if was and added and lost and not set(was[:1]) & set(now[:1]):
        return f"another command: {' '.join(now)[:120]}"
    return ""


def _is_higher(was: list[str], now: list[str]) -> bool:
    limits = [[float(m[1]) for word in words if (m := _LIMIT.match(word)) and m[1]] for words in (was, now)]
    return bool(limits[0] and limits[1] and limits[1][0] >= limits[0][0])
