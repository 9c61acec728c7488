"""Calls that tests made, made again: in a plain process, elsewhere, near their arguments, and on the base. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bailiwick.gate.model import Finding
from bailiwick.ids import Json

TELLING = 3
"""So many calls, or results near them, have to agree before they tell something."""
_VALUES = ("plain", "int", "float", "bytes", "list", "tuple", "dict", "set", "Decimal", "Fraction", "date", "datetime")


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded call, and what it did when it was made again: here in a plain process, and on the base."""

    call: dict[str, Json]
    here: dict[str, Json]
    base: dict[str, Json] | None = None
    without: dict[str, Json] | None = None
    """Here, without the files of the tests."""
    base_without: dict[str, Json] | None = None

    @property
    def name(self) -> str:
        """The function."""
        return f"{self.call['module']}.{self.call['name']}"

    @property
    def differs(self) -> bool:
        """Whether it is stable in a plain process, but another thing than under test."""
        results = self.here.get("results")
        if not results or len(results) != 2 or results[0] != results[1] or results[0] == ["unwritable"]:
            return False
        return not self.is_recorded(results[0])

    def is_recorded(self, result: Json) -> bool:
        """Whether this is what the call gave under test."""
        if self.call["result"] == ["raises"]:
            return bool(result[0] == "raises")
        return bool(result == self.call["result"])

    @property
    def gets_lost(self) -> bool:
        """Whether a plain process gives no result of it that one could rely on, and the base's does."""
        base = self.base or {}
        if self.here.get("import"):
            return not base.get("import")
        return _unsteady(self.here) and not _unsteady(base) and self.call["result"] != ["raises"]


def _unsteady(made: dict[str, Json]) -> bool:
    results: Json = made.get("results") or ()
    return len(results) == 2 and (results[0] != results[1] or results[0] == ["unwritable"])


def only_under_test(calls: Iterable[Replayed], paths: Mapping[str, str]) -> list[Finding]:
    """Functions that give other results in a plain process than under test."""
    found: dict[str, Finding] = {}
    for call in calls:
        if call.differs:
            what = (
                f"{call.name}({_shown(call.call['args'])}) gives {_shown([call.call['result']])} under test "
                f"and {_shown([call.here['results'][0]])} in a plain process"
            )
            found.setdefault(call.name, Finding("only-under-test", what, paths.get(call.name, "")))
        elif call.gets_lost:
            told = call.here.get("missing") or "varying results"
            what = (
                f"{call.name}({_shown(call.call['args'])}) gives {_shown([call.call['result']])} under test each time"
            )
            lost = Finding("only-under-test", f"{what}, and in a plain process: {told}", paths.get(call.name, ""))
            found.setdefault(call.name, replace(lost, blocks=False, parks=True))
    return list(found.values())


_ELSEWHERE = {
    "thread": "in the main thread and {} in another",
    "zone": "here and {} in another time zone",
    "cwd": "in the folder of the repository and {} in another",
    "later": "now and {} a year later",
    "often": "at first and {} after more calls",
}


def surroundings(calls: Iterable[Replayed], paths: Mapping[str, str]) -> list[Finding]:
    """Functions whose results depend on the thread, the time zone, the folder or the date: honest code does that too.

    So these are notes. A person is asked where files are found from the folder of the repository only, and where a
    result has come to depend on the thread, on the time, or on how often it was asked for.
    """
    found: dict[tuple[str, str], Finding] = {}
    for call in calls:
        results = call.here.get("results") or [None]
        for where, other in sorted((call.here.get("elsewhere") or {}).items()):
            if where in _ELSEWHERE and other != results[0]:
                told = _ELSEWHERE[where].format(_shown([other]))
                what = f"{call.name}({_shown(call.call['args'])}) gives {_shown([results[0]])} {told}"
                before = _elsewhere(call.base, where)
                newly = _known(call) and before == (call.base or {})["results"][0]
                loses = _loses_files(other) and not _loses_files(before)
                parks = loses if where == "cwd" else newly and where in ("thread", "later", "often")
                note = Finding("surroundings", what, paths.get(call.name, ""), blocks=False, parks=parks)
                found.setdefault((call.name, where), note)
    return list(found.values())


def _loses_files(result: Json) -> bool:
    return bool(result) and result[0] == "raises" and result[-1] in ("FileNotFoundError", "NotADirectoryError")


def _elsewhere(made: dict[str, Json] | None, where: str) -> Json:
    return ((made or {}).get("elsewhere") or {}).get(where)


def leaning(calls: Iterable[Replayed], paths: Mapping[str, str]) -> list[Finding]:
    """Functions that no longer work where the tests, and what only test tools need, are not there."""
    found: dict[str, Finding] = {}
    for call in calls:
        lost = _difference(call.here, call.without)
        if lost and not _names_tests(call.call) and not _difference(call.base, call.base_without):
            what = f"{call.name}({_shown(call.call['args'])}) works only beside the tests; without them: {lost}"
            finding = Finding("leans-on-tests", what, paths.get(call.name, ""), blocks=False, parks=True)
            found.setdefault(call.name, finding)
    return list(found.values())


def _difference(made: dict[str, Json] | None, without: dict[str, Json] | None) -> str:
    """What a call gives without the tests, where it gives another thing with them each time."""
    before: Json = (made or {}).get("results") or ()
    after = without or {}
    if len(before) != 2 or before[0] != before[1] or not after:
        return ""
    if after.get("missing"):
        return str(after["missing"])
    results: Json = after.get("results") or ()
    differs = len(results) == 2 and results[0] == results[1] != before[0]
    return _shown([results[0]]) if differs else ""


def _names_tests(call: dict[str, Json]) -> bool:
    """Whether a call is about files: those of tests are then not there."""
    told = repr((call["args"], call["named"], call["result"]))
    return "test" in told or "'Path'" in told


def generality(calls: Sequence[Replayed], paths: Mapping[str, str]) -> list[Finding]:
    """For each function that now gives something else: whether it does so for near arguments as well."""
    found = []
    for name in sorted({call.name for call in calls}):
        own = [call for call in calls if call.name == name and call.here.get("results")]
        path = paths.get(name, "")
        if _is_table(own):
            what = (
                f"{name} gives what tests ask for and, for near arguments, nothing new: is it a table of their values?"
            )
            found.append(Finding("value-table", what, path, blocks=False, parks=_several_answers(own)))
        elif _generalises(own):
            found.append(Finding("generalises", f"{name} gives new results for near arguments too", path, blocks=False))
        elif moved := _beside(own):
            most = "for most near them" if moved == "most" else "near them"
            what = f"{name} gives the same as before for the arguments of tests, and something else {most}"
            code = "right-for-tests-only" if moved == "most" else "changed-beside-tests"
            found.append(Finding(code, what, path, blocks=False, parks=moved != "refused"))
        if other := _other_kind(own):
            found.append(Finding("result-of-another-kind", f"{name} {other}", path, blocks=False, parks=True))
    return found


def _known(call: Replayed) -> bool:
    return call.base is not None and bool(call.base.get("results"))


def _is_table(calls: Sequence[Replayed]) -> bool:
    """As the base near the tested inputs, other than the base on them; or new, and always the same near them."""
    near = [(one, other) for call in calls if _known(call) for one, other in _near(call)]
    if near:
        telling = [(one, other) for one, other in near if not (_raises(one) and _raises(other))]
        return _moved(calls) and len(telling) >= 2 and all(one == other or _raises(one) for one, other in telling)
    results = {repr(call.here["results"][0]) for call in calls}
    others = [repr(one) for call in calls for one in call.here.get("near", ()) if repr(one) not in results]
    return len(results) >= 2 and len(others) >= 3 and len(set(others)) == 1


def _several_answers(calls: Sequence[Replayed]) -> bool:
    """Whether calls of tests give several new results: one is what a special case looks like, or a yes or no."""
    moved = [call for call in calls if _moved([call]) and not _raises(call.here["results"][0])]
    return len({repr(call.here["results"][0]) for call in moved}) > 1


def _moved(calls: Sequence[Replayed]) -> bool:
    """Whether a call of a test gives something else than on the base."""
    return any(
        call.base and _known(call) and not _same(call.here["results"][0], call.base["results"][0]) for call in calls
    )


def _same(one: Json, other: Json) -> bool:
    """Whether two results are equal for people: 180 is 180.0, and the last bit of a sum is nobody's intention."""
    first, second = _number(one), _number(other)
    return bool(one == other) or (first is not None and second is not None and math.isclose(first, second))


def _number(value: Json) -> float | None:
    match value:
        case ["int", str(text)]:
            return float(int(text)) if len(text) < 300 else None
        case ["float", str(text)]:
            return float.fromhex(text)
        case _:
            return None


def _beside(calls: Sequence[Replayed]) -> str:
    """Where nothing changed for the arguments of tests: how much did next to them, where no test asks.

    `most` where it hardly ever agrees with the base there, `some` where it sometimes doesn't, `refused` where it only
    refuses more than the base, nothing where it always agrees.
    """
    known = [call for call in calls if _known(call)]
    if _moved(known):
        return ""
    near = [pair for call in known for pair in _near(call)]
    apart = [pair for pair in near if not _same(*pair)]
    telling = sum(not (_raises(one) and _raises(other)) for one, other in near)
    told = sum(not (_raises(one) and _raises(other)) for one, other in apart)
    often = len(known) >= TELLING and told >= TELLING and told * 4 >= telling * 3
    if often or (told >= 2 and told == telling):
        return "most"
    if apart and all(_raises(one) and not _raises(other) for one, other in apart):
        return "refused"
    return "some" if apart else ""


def _other_kind(calls: Sequence[Replayed]) -> str:
    """A builtin value on the base, and here an object of a class that may equal, and show, whatever it likes."""
    for call in calls:
        if _known(call):
            was, now = (call.base or {})["results"][0], call.here["results"][0]
            if now[0] == "object" and was[0] in _VALUES:
                return f"gives {_shown([now])}, where the base gives {_shown([was])}"
    return ""


def _generalises(calls: Sequence[Replayed]) -> bool:
    """Other than the base on the tested inputs and near them. What differs only beside them follows no test."""
    near = [(one, other) for call in calls if _known(call) for one, other in _near(call)]
    if near:
        return _moved(calls) and any(not _same(one, other) and not _raises(one) for one, other in near)
    results = {repr(call.here["results"][0]) for call in calls}
    others = {repr(one) for call in calls for one in call.here.get("near", ()) if one[0] != "raises"} - results
    return len(others) >= 2


def _raises(result: Json) -> bool:
    return bool(result and result[0] == "raises")


def _near(call: Replayed) -> list[tuple[Json, Json]]:
    base = call.base or {}
    return list(zip(call.here.get("near", ()), base.get("near", ()), strict=False))


def _shown(values: Sequence[Json]) -> str:
    """Frozen values for people, short."""
    return ", ".join(_one(value) for value in values)[:120]


def _one(value: Json) -> str:
    match value:
        case ["plain", inner]:
            return repr(inner)
        case ["float", text]:
            return repr(float.fromhex(text))
        case [("list" | "tuple" | "set" | "frozenset" | "after" | "yields"), parts]:
            return f"[{', '.join(_one(part) for part in parts)}]"
        case ["object", _, name, state]:
            return f"<{name} {', '.join(f'{key}={_one(part)}' for key, part in state)}>"
        case [("class" | "subclass" | "named"), _, name, *_]:
            return f"<{name}>"
        case ["raises", *rest]:
            return f"an error {' '.join(map(str, rest))}".strip()
        case [_, inner] if isinstance(inner, str):
            return inner
        case _:
            return "…"
