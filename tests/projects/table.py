"""Real projects, as their source distributions: name, version, how they are built, and a function that tests cover."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Project:
    """One pinned source distribution. `function` of `module` is covered by its tests; `small` ones run each time."""

    name: str
    version: str
    backend: str
    module: str
    function: str
    also: str = ""
    """What else is special about it."""
    small: bool = False
    first: str = ""
    """What has to be imported before the module, whose imports go round in a circle."""
    red: str = ""
    """Why it is red as it is, with the releases of today, as the gate says it."""

    @property
    def id(self) -> str:
        """How tests are named."""
        return f"{self.name}-{self.version}"

    @property
    def package(self) -> str:
        """The name by which the module is imported."""
        path = self.module.removesuffix(".py").removesuffix("/__init__")
        for root in ("src/", "lib/"):
            path = path.removeprefix(root)
        return path.replace("/", ".")


PROJECTS = (
    Project("toolz", "0.12.1", "setuptools", "toolz/itertoolz.py", "take", "flat, tests inside, versioneer"),
    Project("markupsafe", "2.1.3", "setuptools", "src/markupsafe/__init__.py", "__mul__", "C extension, requirements/"),
    Project("humanize", "4.9.0", "hatchling", "src/humanize/number.py", "ordinal", "hatch-vcs, extras, .mo files"),
    Project(
        "itsdangerous", "2.1.2", "setuptools", "src/itsdangerous/encoding.py", "base64_encode", "pinned pytest 7.0"
    ),
    Project(
        "blinker", "1.7.0", "flit", "src/blinker/base.py", "has_receivers_for", "asyncio, requirements/", small=True
    ),
    Project(
        "pluggy", "1.3.0", "setuptools", "src/pluggy/_manager.py", "register", "setuptools-scm, _version.py, testing/"
    ),
    Project("colorama", "0.4.6", "hatchling", "colorama/ansi.py", "code_to_chars", "unittest, *_test.py"),
    Project("msgpack", "1.0.7", "setuptools", "msgpack/ext.py", "to_bytes", "Cython extension"),
    Project(
        "dep-logic",
        "0.0.4",
        "pdm",
        "src/dep_logic/utils.py",
        "version_split",
        "pdm groups, version from git",
        first="dep_logic.markers",
    ),
    Project("editables", "0.5", "flit", "src/editables/__init__.py", "normalize", "tests/requirements.txt"),
    Project("tomlkit", "0.12.3", "poetry", "tomlkit/api.py", "parse", "poetry groups"),
    Project("contourpy", "1.2.0", "meson", "lib/contourpy/util/renderer.py", "_grid_as_2d", "C++, numpy, nox"),
    Project("simplejson", "3.19.2", "setuptools", "simplejson/encoder.py", "floatstr", "C extension, unittest only"),
    Project("semver", "3.0.2", "setuptools", "src/semver/version.py", "bump_major", "tox, doctests, coverage"),
    Project("h11", "0.14.0", "setuptools", "h11/_headers.py", "get_comma_header", "tests inside"),
    Project("isodate", "0.6.1", "setuptools", "src/isodate/isotime.py", "parse_time", "setuptools-scm, unittest"),
    Project(
        "tabulate", "0.9.0", "setuptools", "tabulate/__init__.py", "_pipe_line_with_colons", "test/, CI requirements"
    ),
    Project("cleo", "2.1.0", "poetry", "src/cleo/_utils.py", "format_time", "poetry groups, pytest-mock"),
    Project("pathspec", "0.12.1", "flit", "pathspec/util.py", "normalize_file", "unittest, tox"),
    Project("python-json-logger", "2.0.7", "setuptools", "src/pythonjsonlogger/jsonlogger.py", "jsonify_log_record"),
    Project("validators", "0.22.0", "setuptools", "src/validators/between.py", "between", "extras"),
    Project("jsonpointer", "2.4", "setuptools", "jsonpointer.py", "unescape", "one module, tests.py"),
    Project("outcome", "1.3.0.post0", "setuptools", "src/outcome/_impl.py", "capture", "test-requirements.txt"),
    Project("exceptiongroup", "1.2.0", "flit-scm", "src/exceptiongroup/_catch.py", "catch", "version from git"),
    Project("uritemplate", "4.1.1", "setuptools", "uritemplate/api.py", "expand", "flat"),
    Project("installer", "0.7.0", "flit", "src/installer/utils.py", "canonicalize_name", "nox, tests/requirements.txt"),
    Project("webcolors", "1.13", "setuptools", "src/webcolors/normalization.py", "normalize_hex", "extras, nox"),
    Project("parse", "1.20.0", "setuptools", "parse.py", "percentage", "one module"),
    Project(
        "unearth",
        "0.14.0",
        "pdm",
        "src/unearth/utils.py",
        "strip_extras",
        "pdm groups, a newer `packaging`",
        red="4 tests are red on the base each time, before any change",
    ),
    Project("cachetools", "5.3.2", "setuptools", "src/cachetools/keys.py", "hashkey", "tox, unittest"),
)
"""Different back ends, layouts, ways to list what tests need, and kinds of tests."""
