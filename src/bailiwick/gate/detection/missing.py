"""What a failed collection lacks: module, fixture, option, mark or plugin, and the line that brings it. Pure.

A module of the tree itself, or one of the names that every project gives its own files, is a missing file: it is never
asked of an index, where a stranger may have taken the name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from bailiwick.gate.detection.plugins import FIXTURES, MARKS, plugin_for_option
from bailiwick.gate.detection.reading import name_of, normal, requirement_lines, toml_of

_SAME_NAME = """
aiohttp anyio asynctest attrs babel build cffi click cloudpickle coverage curio cython ddt django docutils
exceptiongroup faker flask flask_sqlalchemy freezegun gevent graphviz greenlet httpretty httpx hypothesis
importlib_metadata importlib_resources jinja2 lark lxml markdown matplotlib mock msgpack networkx numpy orjson
packaging pandas parameterized pexpect pretend psutil pydantic pygments pymongo pytest pytest_asyncio
pytest_benchmark pytest_cov pytest_httpserver pytest_mock pytest_regressions pytest_subtests pytest_timeout
pytest_trio pytz redis requests requests_mock responses respx rich scipy setuptools sh simplejson six
sortedcontainers sqlalchemy syrupy testfixtures testtools time_machine toml tomli tomli_w tomlkit tree_sitter trio
trustme twisted typing_extensions tzdata ujson unittest2 virtualenv werkzeug wheel
"""
_OTHER_NAME = """
attr:attrs bs4:beautifulsoup4 bson:pymongo cairo:pycairo Crypto:pycryptodome cv2:opencv-python-headless
Cython:cython dateutil:python-dateutil distutils:setuptools docx:python-docx dotenv:python-dotenv
factory:factory-boy fitz:pymupdf gi:pygobject git:gitpython google.protobuf:protobuf jose:python-jose jwt:pyjwt
ldap:python-ldap Levenshtein:levenshtein magic:python-magic memcache:python-memcached MySQLdb:mysqlclient
nacl:pynacl nose:pynose OpenSSL:pyopenssl PIL:pillow pkg_resources:setuptools<81 pptx:python-pptx
psycopg2:psycopg2-binary rest_framework:djangorestframework ruamel:ruamel-yaml serial:pyserial skimage:scikit-image
sklearn:scikit-learn slugify:python-slugify usb:pyusb vcr:vcrpy win32api:pywin32 wx:wxpython xdist:pytest-xdist
yaml:pyyaml zmq:pyzmq zope.interface:zope-interface
"""
DISTRIBUTIONS = {
    **{name: name.replace("_", "-") for name in _SAME_NAME.split()},
    **dict(pair.split(":", 1) for pair in _OTHER_NAME.split()),
}
"""Import name → what to install."""


Kind = Literal["module", "fixture", "option", "mark", "plugin", "file"]
INSTALLER = (".venv/bin/python", "-m", "pip", "install")
_OWN_NAMES = frozenset(
    [
        "test",
        "tests",
        "testing",
        "util",
        "utils",
        "helper",
        "helpers",
        "common",
        "conftest",
        "fixtures",
        "support",
        "lib",
        "src",
        "main",
        "app",
        "config",
        "settings",
        "data",
        "base",
        "core",
        "tools",
        "scripts",
        "examples",
    ]
)
_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)'?")
_PLUGIN_MODULE = re.compile(r"Error importing plugin [\"']([\w.]+)[\"']: No module named '?([\w.]+)'?")
_FIXTURE = re.compile(r"fixture '(\w+)' not found")
_OPTIONS = re.compile(r"error: unrecognized arguments: (.+)")
_MARK = re.compile(r"'(\w+)' not found in `markers` configuration option|Unknown pytest\.mark\.(\w+)")
_PLUGINS = re.compile(r"Missing required plugins: (.+)")
_ASYNC = "async def functions are not natively supported"


@dataclass(frozen=True, slots=True)
class MissingPart:
    """What is missing, and the requirement that brings it; `known` where the project or our table names it.

    `command` is the line for `prepare`; it is empty for a file, which nobody can install.
    """

    name: str
    kind: Kind
    requirement: str = ""
    known: bool = False
    command: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """What is missing, in words."""
        if self.kind == "file":
            return f"the tests need '{self.name}', a file of this project that is not in the tree"
        return f"the {self.kind} '{self.name}' is missing in the environment"

    @property
    def hint(self) -> str:
        """What to do about it."""
        if not self.command:
            return "add the file, or leave out the tests that need it"
        return f"add to `prepare` in .bailiwick/gate.yaml:  - [{', '.join(self.command)}]"


def missing_at_collection(
    texts: Mapping[str, str],
    output: str,
    tree_files: Collection[str],
    installer: tuple[str, ...] = INSTALLER,
) -> MissingPart | None:
    """The first thing that pytest lacked when it collected; None where its output tells of nothing missing.

    `texts` are manifests of the project by path.
    """
    names = {name_of(text): text for text in _declared(texts) if name_of(text)}
    for name, kind, requirement in _found(output):
        if kind == "module":
            return _module(name, tree_files, names, installer)
        plain = names.get(name_of(requirement), requirement)
        if plain:
            return MissingPart(name, kind, plain, known=True, command=(*installer, plain))
        return MissingPart(name, kind)
    return None


def _found(output: str) -> Iterator[tuple[str, Kind, str]]:
    """What the output says is missing, the most telling first: name, kind and the requirement if a table has it."""
    for found in _PLUGIN_MODULE.finditer(output):
        yield found[2], "module", ""
    for found in _PLUGINS.finditer(output):
        yield from ((name_of(word), "plugin", word) for word in re.split(r"[,\s]+", found[1].strip()))
    for found in _OPTIONS.finditer(output):
        options = ((word, plugin_for_option(word)) for word in found[1].split())
        yield from ((word, "option", plugin) for word, plugin in options if plugin)
    for found in _MODULE.finditer(output):
        yield found[1], "module", ""
    fixtures = (found[1] for found in _FIXTURE.finditer(output))
    yield from ((name, "fixture", FIXTURES[name]) for name in fixtures if name in FIXTURES)
    marks = (found[1] or found[2] for found in _MARK.finditer(output))
    yield from ((name, "mark", MARKS[name]) for name in marks if name in MARKS)
    if _ASYNC in output:
        yield "asyncio", "plugin", "pytest-asyncio"


def _module(
    name: str, tree_files: Collection[str], names: Mapping[str, str], installer: tuple[str, ...]
) -> MissingPart:
    top = name.partition(".")[0]
    if top in _OWN_NAMES or is_own(top, tree_files) or (top in sys.stdlib_module_names and top not in DISTRIBUTIONS):
        return MissingPart(name, "file")
    mapped = DISTRIBUTIONS.get(name) or DISTRIBUTIONS.get(top, "")
    for candidate in (mapped, top, f"python-{top}", f"py{top}"):
        if normal(candidate) in names:
            wanted = names[normal(candidate)]
            return MissingPart(name, "module", wanted, known=True, command=(*installer, wanted))
    wanted = mapped or normal(top)
    return MissingPart(name, "module", wanted, known=bool(mapped), command=(*installer, wanted))


def is_own(top: str, tree_files: Collection[str]) -> bool:
    """Whether a module of this name is among the files of a tree."""
    pattern = re.compile(rf"(?:.*/)?{re.escape(top)}(?:\.pyi?|\.pyx|/.*\.py)")
    return any(pattern.fullmatch(path) for path in tree_files)


def _declared(texts: Mapping[str, str]) -> Iterator[str]:
    """Every requirement that a manifest names, for whatever purpose."""
    for path, text in texts.items():
        if path.endswith((".txt", ".in")):
            yield from requirement_lines(text)
        elif path.endswith(".toml"):
            yield from _strings(toml_of({path: text.encode()}, path))
        elif path.endswith((".cfg", ".ini", ".py")):
            yield from re.findall(r"(?m)^\s*[\"']?([A-Za-z][\w.-]*(?:\s*[<>=!~]=[^\"'\n;,]*)?)[\"']?,?\s*$", text)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if re.fullmatch(r"[A-Za-z][\w.-]*(?:\[[\w,-]+\])?\s*(?:[<>=!~;@ ].*)?", value):
            yield value
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry)
    elif isinstance(value, dict):
        for entry in value.values():
            if isinstance(entry, (list, dict)):
                yield from _strings(entry)
