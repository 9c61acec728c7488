"""Plugins of pytest that a configuration or a test needs, known before anything fails. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from bailiwick.gate.detection.project import PytestSettings
from bailiwick.gate.detection.reading import unique

_OPTIONS = (
    (re.compile(r"--(?:no-)?cov\b"), "pytest-cov"),
    (re.compile(r"-n(?:\d+|auto|logical)?$|--numprocesses|--dist\b|--maxprocesses"), "pytest-xdist"),
    (re.compile(r"--timeout\b|--timeout-method"), "pytest-timeout"),
    (re.compile(r"--benchmark"), "pytest-benchmark"),
    (re.compile(r"--randomly|--random-order"), "pytest-randomly"),
    (re.compile(r"--reruns"), "pytest-rerunfailures"),
    (re.compile(r"--asyncio-mode"), "pytest-asyncio"),
    (re.compile(r"--flake8"), "pytest-flake8"),
    (re.compile(r"--mypy"), "pytest-mypy"),
    (re.compile(r"--black"), "pytest-black"),
    (re.compile(r"--ruff"), "pytest-ruff"),
    (re.compile(r"--isort"), "pytest-isort"),
    (re.compile(r"--html\b"), "pytest-html"),
    (re.compile(r"--instafail"), "pytest-instafail"),
    (re.compile(r"--doctest-plus|--doctest-rst"), "pytest-doctestplus"),
    (re.compile(r"--mpl\b"), "pytest-mpl"),
    (re.compile(r"--nbval"), "nbval"),
    (re.compile(r"--ds=|--reuse-db|--no-migrations"), "pytest-django"),
    (re.compile(r"--disable-socket|--allow-hosts"), "pytest-socket"),
    (re.compile(r"--snapshot"), "syrupy"),
    (re.compile(r"--typeguard-packages"), "typeguard"),
)
_KEYS = {
    "asyncio_mode": "pytest-asyncio",
    "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "timeout": "pytest-timeout",
    "timeout_method": "pytest-timeout",
    "env": "pytest-env",
    "trio_mode": "pytest-trio",
    "django_settings_module": "pytest-django",
    "DJANGO_SETTINGS_MODULE": "pytest-django",
    "qt_api": "pytest-qt",
    "mocked-sessions": "alchemy-mock",
    "doctest_plus": "pytest-doctestplus",
    "anyio_mode": "anyio",
}
FIXTURES = {
    "mocker": "pytest-mock",
    "class_mocker": "pytest-mock",
    "module_mocker": "pytest-mock",
    "session_mocker": "pytest-mock",
    "benchmark": "pytest-benchmark",
    "httpserver": "pytest-httpserver",
    "httpx_mock": "pytest-httpx",
    "respx_mock": "respx",
    "requests_mock": "requests-mock",
    "aiohttp_client": "pytest-aiohttp",
    "aiohttp_server": "pytest-aiohttp",
    "subtests": "pytest-subtests",
    "datadir": "pytest-datadir",
    "shared_datadir": "pytest-datadir",
    "data_regression": "pytest-regressions",
    "file_regression": "pytest-regressions",
    "num_regression": "pytest-regressions",
    "freezer": "pytest-freezer",
    "faker": "faker",
    "fs": "pyfakefs",
    "snapshot": "syrupy",
    "qtbot": "pytest-qt",
    "cov": "pytest-cov",
    "anyio_backend": "anyio",
    "event_loop": "pytest-asyncio",
    "virtualenv": "pytest-virtualenv",
    "script_runner": "pytest-console-scripts",
    "celery_app": "celery",
    "live_server": "pytest-django",
}
"""Fixtures of well-known plugins."""
MARKS = {
    "asyncio": "pytest-asyncio",
    "trio": "pytest-trio",
    "anyio": "anyio",
    "timeout": "pytest-timeout",
    "benchmark": "pytest-benchmark",
    "flaky": "pytest-rerunfailures",
    "django_db": "pytest-django",
    "vcr": "pytest-recording",
    "freeze_time": "pytest-freezer",
    "parametrize_with_cases": "pytest-cases",
}
"""Marks of well-known plugins."""
_USED_FIXTURES = ("mocker", "benchmark", "httpserver", "httpx_mock", "requests_mock", "subtests", "freezer", "datadir")
_USED_MARKS = ("asyncio", "trio", "django_db")
_ARGUMENTS = re.compile(r"def test\w*\(([^)]*)\)", re.DOTALL)


def plugin_for_option(word: str) -> str:
    """The plugin that brings an option of pytest; empty for one that is not known."""
    return next((plugin for pattern, plugin in _OPTIONS if pattern.match(word)), "")


def plugins_of(settings: PytestSettings, tests: Mapping[str, bytes]) -> tuple[str, ...]:
    """The plugins that settings and tests ask for, in no version where none is given."""
    return unique(filter(None, (*_from_settings(settings), *_from_tests(tests.values()))))


def _from_settings(settings: PytestSettings) -> Iterator[str]:
    yield from settings.required_plugins
    yield from (plugin_for_option(word) for word in settings.addopts)
    yield from (_KEYS.get(key, "") for key in settings.keys)
    for before, word in zip(settings.addopts, settings.addopts[1:], strict=False):
        if before == "-p" and word.startswith("xdist"):
            yield "pytest-xdist"


def _from_tests(tests: Iterable[bytes]) -> Iterator[str]:
    text = b"\n".join(tests).decode("utf-8", "replace")
    used = set(re.findall(r"\w+", " ".join(_ARGUMENTS.findall(text))))
    for name in _USED_FIXTURES:
        if name in used and not re.search(rf"def {name}\(|name=[\"']{name}[\"']", text):
            yield FIXTURES[name]
    for mark in _USED_MARKS:
        if f"pytest.mark.{mark}" in text:
            yield MARKS[mark]
