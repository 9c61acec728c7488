"""What nodes give to the context and what they read from it: templates parse, names are provided, outputs are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from bailiwick.engine.graph import Ask, Branch, Call, Map, Node, Parallel, Set, Wait, Work
from bailiwick.errors import Place
from bailiwick.ids import Json
from bailiwick.lang import codes
from bailiwick.lang.compile import Compiled
from bailiwick.lang.fields import Findings
from bailiwick.lang.files import WorkflowFiles
from bailiwick.lang.flow import FlowScope
from bailiwick.lang.reading import NOTHING, Reading, TemplateBroken, is_plain, read_template
from bailiwick.lang.schemas import schema_fault
from bailiwick.lang.values import Value
from bailiwick.lang.wording import quoted

BUILT_IN = frozenset({"run", "node", "workspace", "error"})
"""Names that the engine itself provides."""

_TEMPLATES = {
    "set": ("values",),
    "fail": ("reason",),
    "call": ("params",),
    "wait": ("for", "until"),
    "ask": ("question", "choices"),
}
_NOT_TEMPLATES = frozenset({"prompt", "script", "outputs", "schema", "description"})


def writes(node: Node, returns: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The context keys a node may write; `returns` holds what called workflows give back, by reference."""
    match node:
        case Work() | Wait():
            yield from (output.key for output in node.outputs)
        case Set():
            yield from node.values
        case Parallel():
            yield node.id
            yield from node.export
        case Call():
            yield node.id
            yield from returns.get(node.workflow, ())
        case Ask() | Map():
            yield node.id
        case _:
            return


@dataclass(slots=True)
class DataFlow:
    """The check of one workflow's data flow."""

    compiled: Compiled
    files: WorkflowFiles
    returns: Mapping[str, tuple[str, ...]]
    found: Findings
    reads: set[str] = field(default_factory=set)
    dynamic: bool = False
    _readings: dict[str, Reading] = field(default_factory=dict)
    _warned: set[tuple[str, str]] = field(default_factory=set)

    def check(self, owners: Mapping[str, FlowScope]) -> None:
        """Note every problem of data flow."""
        provided = self._provided()
        self._returned(provided)
        for name, node in self.compiled.nodes.items():
            value = self.compiled.ids[name]
            self._structure(node)
            self._inline(name, node, value, provided)
            self._files(name, node, value, provided)
        self._unread(owners)
        self._schemas()
        _check_exports(self.compiled, owners, self.returns, self.found)

    def _provided(self) -> set[str]:
        header = self.compiled.header
        names = {*BUILT_IN, *header.get("vars", {}), *(header.get("params") or {})}
        for node in self.compiled.nodes.values():
            names.update(writes(node, self.returns))
            if isinstance(node, Map):
                names.add(node.as_)
        return names

    def _returned(self, provided: set[str]) -> None:
        for index, key in enumerate(self.compiled.header.get("returns", ())):
            self.reads.add(key)
            if key not in provided:
                hint = self.found.suggest(key, provided, "remove it, or add it to the outputs of a node")
                place = self.compiled.root.at("returns", index)
                self.found.warn(codes.UNKNOWN_VARIABLE, f"nothing provides the returned key {key!r}", place, hint)

    def _structure(self, node: Node) -> None:
        match node:
            case Branch():
                self.reads.add(node.path.split(".", 1)[0])
            case Map():
                self.reads.add(node.over.split(".", 1)[0])
            case Parallel():
                self.reads.update(node.export)
            case _:
                pass

    def _inline(self, name: str, node: Node, value: Value, provided: set[str]) -> None:
        for key, part in _template_fields(node, value):
            for text in _texts(part):
                unknown = self._reading(text, name).variables - provided
                if unknown:
                    args = self._args(node) if key == "prompt_text" else set()
                    self._note_unknown(name, unknown - args, (args, provided), text.place)

    def _files(self, name: str, node: Node, value: Value, provided: set[str]) -> None:
        if isinstance(node, Wait) and node.poll is not None:
            self.files.need(node.poll.script, value.at("poll", "script"))
        if not isinstance(node, Work):
            return
        if node.type == "script":
            self.files.need(str(node.spec["script"]), value.at("script"))
        if node.type == "agent" and "prompt" in node.spec:
            self._prompt(name, node, value, provided)

    def _prompt(self, name: str, node: Work, value: Value, provided: set[str]) -> None:
        args = self._args(node)
        for index, (file, text, reading) in enumerate(self.files.prompt(str(node.spec["prompt"]), value.at("prompt"))):
            self.reads.update(reading.variables)
            self.dynamic = self.dynamic or reading.dynamic
            unknown = reading.variables - provided - args if index == 0 else frozenset[str]()
            for variable in sorted(unknown):
                place = self.files.find_word(file, text, variable)
                self._note_unknown(name, {variable}, (args, provided), place, key=file)

    def _note_unknown(
        self,
        node: str,
        unknown: set[str] | frozenset[str],
        known: tuple[set[str], set[str]],
        place: Place,
        key: str = "",
    ) -> None:
        for variable in sorted(unknown):
            if (key or node, variable) not in self._warned:
                self._warned.add((key or node, variable))
                hint = self.found.suggest(
                    variable, chain(*known), f"add it to `vars`, or to the outputs of a node before {node!r}"
                )
                what = f"nothing provides the variable {variable!r} that node {node!r} reads"
                self.found.warn(codes.UNKNOWN_VARIABLE, what, place, hint)

    def _args(self, node: Node) -> set[str]:
        args = node.spec.get("args") if isinstance(node, Work) else None
        return set(args) if isinstance(args, dict) else set()

    def _reading(self, text: Value, name: str) -> Reading:
        source = str(text.data)
        if is_plain(source):
            return NOTHING
        if source not in self._readings:
            self._readings[source] = NOTHING
            try:
                self._readings[source] = read_template(source)
            except TemplateBroken as broken:
                where = f" (line {broken.line} of the text)" if broken.line > 1 else ""
                hint = "correct the template; `{% raw %}…{% endraw %}` keeps braces as they are"
                self.found.error(codes.TEMPLATE, f"node {name!r}: template: {broken}{where}", text.place, hint)
        reading = self._readings[source]
        self.reads.update(reading.variables)
        self.dynamic = self.dynamic or reading.dynamic
        for file in filter(None, map(self.files.choose, reading.includes)):
            for _, _, inner in self.files.prompt(file, text.place):
                self.reads.update(inner.variables)
        return reading

    def _unread(self, owners: Mapping[str, FlowScope]) -> None:
        """Outputs nobody reads; nothing is said where a template includes files by names that only the run knows."""
        if self.dynamic:
            return
        read = {name for name in owners if self._read_through(name, owners)}
        for name, node in self.compiled.nodes.items():
            for index, output in enumerate(node.outputs if isinstance(node, Work | Wait) else ()):
                if output.key not in self.reads and name not in read:
                    place = self.compiled.ids[name].at("outputs", index, "key")
                    what = f"no node reads the output {output.key!r} of node {name!r}"
                    hint = "use it, list it in `returns`, or remove it"
                    self.found.warn(codes.UNREAD_OUTPUT, what, place, hint)

    def _read_through(self, name: str, owners: Mapping[str, FlowScope]) -> bool:
        """Whether a construct around the node is read: its results hold what its members wrote."""
        around = owners[name].construct
        return bool(around) and (around in self.reads or self._read_through(around, owners))

    def _schemas(self) -> None:
        faults: dict[str, str] = {}
        params = self.compiled.header.get("params") or {}
        for name, schema in params.items():
            self._schema(f"param {name!r}", schema, self.compiled.root.at("params", name), faults)
        for name, node in self.compiled.nodes.items():
            for index, output in enumerate(node.outputs if isinstance(node, Work | Wait) else ()):
                if output.schema is not None:
                    place = self.compiled.ids[name].at("outputs", index, "schema")
                    self._schema(f"output {output.key!r}", output.schema, place, faults)

    def _schema(self, owner: str, schema: Json, place: Place, faults: dict[str, str]) -> None:
        key = repr(schema)
        if key not in faults:
            faults[key] = schema_fault(schema)
        if faults[key]:
            what = f"the schema of {owner} is not valid: {faults[key]}"
            self.found.error(codes.BAD_SCHEMA, what, place, "see json-schema.org, draft 2020-12")


def _template_fields(node: Node, value: Value) -> list[tuple[str, Value]]:
    """The fields of a node whose texts are templates."""
    shown = [("display", value.entries["display"])] if node.display is not None else []
    return [*shown, *_own_templates(node, value)]


def _own_templates(node: Node, value: Value) -> list[tuple[str, Value]]:
    if isinstance(node, Wait) and node.poll is not None:
        poll = value.entries["poll"]
        return [("args", poll.entries["args"])] if "args" in poll.entries else []
    if isinstance(node, Work):
        return [(key, value.entries[key]) for key in node.spec if key in value.entries and key not in _NOT_TEMPLATES]
    names = _TEMPLATES.get(value.data["type"], ())
    return [(key, value.entries[key]) for key in names if key in value.entries]


def _texts(value: Value) -> Iterator[Value]:
    """All texts in a value, at any depth."""
    ahead = [value]
    while ahead:
        part = ahead.pop()
        if isinstance(part.data, str):
            yield part
        ahead.extend(reversed(part.items))
        ahead.extend(reversed(part.entries.values()))


def _check_exports(
    compiled: Compiled, owners: Mapping[str, FlowScope], returns: Mapping[str, tuple[str, ...]], found: Findings
) -> None:
    """Each exported key is written in exactly one branch."""
    written: dict[tuple[str, str], set[str]] = {}
    for name, scope in owners.items():
        if scope.construct:
            written.setdefault((scope.construct, scope.member), set()).update(writes(compiled.nodes[name], returns))
    for name, node in compiled.nodes.items():
        if not isinstance(node, Parallel) or name not in owners:
            continue
        for index, key in enumerate(node.export):
            by = [member for member in node.branches if key in written.get((name, member), ())]
            place = compiled.ids[name].at("export", index)
            if not by:
                known = sorted(set().union(*(written.get((name, member), set()) for member in node.branches)))
                hint = found.suggest(key, known, f"its branches write {quoted(known[:5])}" if known else "remove it")
                found.error(codes.EXPORT, f"no branch of {name!r} writes the exported key {key!r}", place, hint)
            elif len(by) > 1:
                what = f"the branches {' and '.join(map(repr, by))} of {name!r} write the exported key {key!r}"
                found.error(codes.EXPORT, what, place, f"write it under two names, or read it from `{name}`")
