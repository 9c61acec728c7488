"""A call of a skill on a project: which paths it means, what has to hold before, what a model is shown of it."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.brain.model import slug
from bailiwick.config.variables import Environment
from bailiwick.errors import UsageError
from bailiwick.git.names import shown
from bailiwick.routing.model import Outcome
from bailiwick.skills.checks import find_check
from bailiwick.skills.checks_tdd import expect_green, expect_test
from bailiwick.skills.delivery import path_fault
from bailiwick.skills.material import Surroundings, candidates, expanded, imported, mentioned, surroundings
from bailiwick.skills.project_files import AttemptFiles, CallSetting, ProjectFiles, Watching
from bailiwick.skills.site import CheckArguments
from bailiwick.skills.tasks import task_text

if TYPE_CHECKING:
    from bailiwick.skills.calling import Arguments, SkillCall

BAD_PATH = "BW296"
SPECS = "docs/specs"
NAMED = 5
_WORDS = 8
"""Words of the requirements that make the name of a specification."""


class ProjectCall:
    """One call on one project."""

    def __init__(self, call: SkillCall, root: Path) -> None:
        self._call = call
        self._root = root
        self._given = self._settled()
        self._asked = CheckArguments(
            test_cmd=self._text("test_cmd"),
            test_path=self._text("test_path"),
            impl_path=self._text("impl_path"),
            output_path=self._text("output_path"),
            material="\n".join(self._texts()),
        )

    async def outcome(self) -> Outcome:
        """Open the bench, look whether the call can be done at all, and have it routed."""
        call, shared = self._call, self._call.shared
        setting = CallSetting(shared.sandboxes, shared.config.paths, Environment().home(), shared.clean)
        check = find_check(call.tool.skill, call.tool.phase)
        watching = Watching(call.caller.cancel, call.caller.show)
        bench = ProjectFiles(
            self._root, setting=setting, watching=watching, check_with=check, asked=self._asked, writes=call.tool.writes
        )
        try:
            site = await bench.open()
            await self._expect(site)
            around = await self._around(site)
            task = await call.with_past(task_text(call.tool, self._given, around.lines if around else None))
            files = [*await self._shown(site), *(around.shown if around else ())]
            job = replace(call.job(task, root=self._root), files=tuple(dict.fromkeys(files)))
            return await call.route(job, bench)
        finally:
            await bench.drop()

    async def _expect(self, site: AttemptFiles) -> None:
        """Raise `UsageError` for what no model can mend."""
        asked, tool = self._asked, self._call.tool
        if asked.test_cmd:
            site.trials.check(asked.test_cmd)
        if tool.skill == "tdd" and asked.test_path:
            await expect_test(site, asked)
        if tool.skill == "tdd" and asked.impl_path:
            self._require([asked.impl_path], await site.files("before"), "impl_path")
            await expect_green(site, asked)

    async def _around(self, site: AttemptFiles) -> Surroundings | None:
        """Where a new test belongs; None for a call that is told its files."""
        if (self._call.tool.skill, self._call.tool.phase) != ("tdd", "red"):
            return None
        files, text = await site.files("before"), self._asked.material
        return surroundings(text, files, await site.sources(candidates(text, files)))

    async def _shown(self, site: AttemptFiles) -> list[str]:
        """The files that a model without tools sees: those that are named, then those that the call is about."""
        files = await site.files("before")
        named, missing = expanded(self._named(), files)
        if missing:
            self._require(missing, files, " or ".join(self._call.tool.files))
        found = dict.fromkeys(named)
        test = self._asked.test_path.partition("::")[0]
        if test in files:
            found[test] = None
            found.update(dict.fromkeys(imported(await site.read("before", test) or b"", test, files)))
        found.update(dict.fromkeys(mentioned(self._asked.material, files, str(self._root))))
        return list(found)

    def _named(self) -> list[str]:
        values = [self._given.get(argument) or [] for argument in self._call.tool.files]
        names = [name for value in values for name in (value if isinstance(value, list) else [value])]
        return [str(name).partition("::")[0] for name in names]

    def _require(self, names: list[str], files: tuple[str, ...], argument: str) -> None:
        lost = [name for name in names if name not in files]
        if lost:
            listed = ", ".join(shown(name) for name in lost[:NAMED])
            raise UsageError(
                f"{argument}: {listed} is not in the project {self._root}",
                hint="name files relative to project_root; ignored files do not count",
                code=BAD_PATH,
            )

    def _settled(self) -> Arguments:
        """The arguments with real, relative paths; a specification gets a place if it has none."""
        out: Arguments = {**self._call.given, "project_root": str(self._root)}
        for argument in self._call.tool.arguments:
            value = out.get(argument.name)
            if argument.name == "project_root" or not value:
                continue
            if argument.kind == "path":
                out[argument.name] = self._relative(str(value), argument.name)
            elif argument.kind == "paths" and isinstance(value, list):
                out[argument.name] = [self._relative(str(one), argument.name) for one in value]
        if self._call.tool.skill == "spec" and not out.get("output_path"):
            words = str(out.get("requirements", "")).split()[:_WORDS]
            out["output_path"] = f"{SPECS}/{slug(' '.join(words), 'spec')}.md"
        return out

    def _relative(self, name: str, argument: str) -> str:
        """A path as it is called in the project; one that leads out of it is refused."""
        path, mark, rest = name.partition("::")
        if path.startswith("/"):
            real = Path(path).resolve()
            path = real.relative_to(self._root).as_posix() if real.is_relative_to(self._root) else path
        path = posixpath.normpath(path)
        fault = "" if path == "." and argument in self._call.tool.files else path_fault(path)
        if fault:
            raise UsageError(f"{argument}: {fault}", hint="name a path below project_root", code=BAD_PATH)
        return path + mark + rest

    def _text(self, name: str) -> str:
        return str(self._given.get(name) or "")

    def _texts(self) -> list[str]:
        """The caller's own words."""
        kinds = {one.name for one in self._call.tool.arguments if one.kind == "text"} - {"test_cmd"}
        return [value for name, value in self._given.items() if name in kinds and isinstance(value, str)]
