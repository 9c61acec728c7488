"""The version of a project whose build asks git for it: in a checkout without tags it has to be told. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bailiwick.gate.detection.project import Project
from bailiwick.gate.detection.reading import normal, text_of

CHANGE_LOG = re.compile(r"(?:docs?/)?(?:CHANGE(?:S|LOG)?|HISTORY|NEWS|RELEASES?)(?:\.(?:md|rst|txt))?", re.IGNORECASE)
_VERSION = r"v?(\d+(?:\.\d+)+(?:(?:a|b|rc|\.post|\.dev)\d+)?)"
_HEADING = re.compile(
    rf"^(?:\#+\s*|=+\s*|\*+\s*|\[)*\[?(?:version|release|[A-Za-z][\w.-]{{0,30}})?\s*\[?{_VERSION}\b", re.IGNORECASE
)
_FALLBACK = "1.0.0"


def version_of(project: Project, texts: Mapping[str, bytes], tags: tuple[str, ...]) -> tuple[str, str]:
    """The version that the base is likely to have, and where it was found.

    From the newest tag that leads to the base, the metadata of a source distribution, or the change log.
    """
    for tag in tags:
        if found := re.search(rf"(?:^|[^\d.]){_VERSION}$", tag):
            return found[1], f"the tag {tag}"
    if found := re.search(r"(?m)^Version: *(\S+)", text_of(texts, "PKG-INFO")):
        return found[1], "PKG-INFO"
    for path in sorted(texts):
        if CHANGE_LOG.fullmatch(path):
            for line in text_of(texts, path).splitlines()[:400]:
                if heading := _HEADING.match(line.strip()):
                    return heading[1], path
    if project.version:
        return project.version, "the project's own metadata"
    return _FALLBACK, "a guess: no tag, no metadata and no change log say it"


def version_variables(project: Project, version: str) -> tuple[str, ...]:
    """The variables by which a build is told a version that it would ask git for."""
    name = re.sub(r"[-_.]+", "_", normal(project.name)).upper()
    scm = "SETUPTOOLS_SCM_PRETEND_VERSION"
    known = {
        "setuptools-scm": f"{scm}_FOR_{name}" if name else scm,
        "hatch-vcs": scm,
        "pdm": "PDM_BUILD_SCM_VERSION",
        "pbr": "PBR_VERSION",
        "poetry-dynamic": "POETRY_DYNAMIC_VERSIONING_BYPASS",
    }
    variable = known.get(project.version_from)
    return (f"{variable}={version}",) if variable else ()
