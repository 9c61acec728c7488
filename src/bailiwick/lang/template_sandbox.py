"""Jinja2 with a fence: no Python internals, no dice, and bounds on steps, sizes and widths. Imported only when needed.

Templates are the author's, but a run lasts for days and a template must neither stop it nor read outside its directory.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from jinja2 import ChainableUndefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from bailiwick.engine.render import Lookup, RenderFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_STEPS = 1_000_000
MAX_RANGE = 100_000
MAX_WIDTH = 10_000
MAX_BITS = 4096
_WIDE = re.compile(r"\d{5,}|\*")


@dataclass(slots=True)
class TemplateRender:
    """One rendering: where names are looked up, what was missing, how many steps are left."""

    lookup: Lookup
    strict: bool = False
    chains: tuple[str, ...] = ()
    steps: int = MAX_STEPS
    missed: dict[str, None] = field(default_factory=dict)

    def note(self, obj: Any, name: str) -> None:
        """Record a missing name; an error where the workflow is strict."""
        dotted = name if obj is missing else self._dotted(obj, name)
        if self.strict:
            raise RenderFailed(f"{dotted!r} is missing")
        self.missed[dotted] = None

    def spend(self, steps: int) -> None:
        """Count steps; too many end the rendering."""
        self.steps -= steps
        if self.steps < 0:
            raise RenderFailed(f"the template takes more than {MAX_STEPS:,} steps")

    def _dotted(self, obj: Any, name: str) -> str:
        """The written path of an attribute: the chain that leads to this very object, else one that ends alike."""
        alike = [chain for chain in self.chains if chain.endswith("." + name)]
        for chain in alike:
            if self._resolves(chain[: -len(name) - 1], obj):
                return chain
        return alike[0] if alike else name

    def _resolves(self, path: str, obj: Any) -> bool:
        first, *rest = path.split(".")
        try:
            value = self.lookup(first)
            for part in rest:
                value = value[part]
        except (KeyError, TypeError, IndexError):
            return False
        return value is obj


CURRENT: ContextVar[TemplateRender | None] = ContextVar("CURRENT", default=None)


class MissingValue(ChainableUndefined):
    """What a missing variable or attribute is: empty, chainable, and noted once it is used."""

    __slots__ = ()

    def _note(self) -> None:
        current = CURRENT.get()
        if current is not None:
            current.note(self._undefined_obj, str(self._undefined_name))

    def __str__(self) -> str:
        self._note()
        return ""

    def __iter__(self) -> Iterator[Any]:
        self._note()
        return iter(())

    def __bool__(self) -> bool:
        self._note()
        return False

    def __len__(self) -> int:
        self._note()
        return 0

    def __getattr__(self, name: str) -> MissingValue:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return MissingValue(obj=self._undefined_obj, name=f"{self._undefined_name}.{name}")

    def __getitem__(self, key: Any) -> MissingValue:  # type: ignore[override]
        return MissingValue(obj=self._undefined_obj, name=f"{self._undefined_name}.{key}")


class _Names(Context):
    """Looks a name up when the template asks for it, so a render costs what it uses and not what there is."""

    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        value = self.parent.get(key, missing)
        known = self.environment.globals.get(key, missing)
        if value is not missing and value is not known:
            return value
        current = CURRENT.get()
        if current is not None:
            try:
                return current.lookup(key)
            except KeyError:
                pass
        return value

    def __contains__(self, name: object) -> bool:
        return self.resolve_or_missing(str(name)) is not missing


class _Code(CodeGenerator):
    """Joins `~` through the environment, which knows how large a text may get."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 Jinja2 names its visitors so
        self.write("environment.concat(map(environment.printed, (")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write(")))")


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """The environment of all templates of a workflow."""

    context_class = _Names
    code_generator_class = _Code
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, limit: int, **options: Any) -> None:
        self.limit = limit
        super().__init__(
            undefined=MissingValue, keep_trailing_newline=True, auto_reload=False, finalize=self._printable, **options
        )
        self.concat: Callable[[Iterable[str]], str] = self._join
        self.globals.pop("lipsum")
        self.globals["range"] = _bounded_range
        self.filters.pop("random")
        for name in ("string", "tojson", "pprint"):
            self.filters[name] = _weighed(self, self.filters[name])
        for name in ("center", "batch", "slice", "tojson", "wordwrap"):
            self.filters[name] = _narrow(self.filters[name])
        self.filters["indent"] = partial(_indent, self)
        self.filters["format"] = partial(_percent, self)
        self.filters["replace"] = partial(_replace, self)
        self.filters["join"] = partial(_join_filter, self)

    @property
    def step(self) -> None:
        """Read by the generated code at each turn of a loop: counts it."""
        current = CURRENT.get()
        if current is not None:
            current.spend(1)

    @property
    def entry(self) -> None:
        """Read by the generated code where a macro, a block or a file begins: counts it, dearer than a turn."""
        current = CURRENT.get()
        if current is not None:
            current.spend(20)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        raise SecurityError(f"the attribute {attribute!r} of a {type(obj).__name__} is out of reach")

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._guarded(obj, attribute, super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._guarded(obj, argument, super().getitem(obj, argument))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            return _percent(self, left, right)
        if operator == "+":
            self.fits(self._weigh(left) + self._weigh(right))
        elif operator in ("*", "**"):
            self._product(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def fits(self, size: int) -> None:
        """Refuse a value larger than a whole rendering may be."""
        if size > self.limit:
            raise RenderFailed(f"the template makes a value of more than {self.limit:,} characters")

    def printed(self, value: Any) -> str:
        """The text of a value, refused before it gets too large."""
        self.fits(self._weigh(value))
        return str(value)

    def _weigh(self, value: Any) -> int:
        """About as many characters as a value prints; counts no further than the limit."""
        weight = 0
        open_values = [value]
        while open_values and weight <= self.limit:
            part = open_values.pop()
            weight += len(part) if isinstance(part, str) else 1
            if isinstance(part, list | tuple):
                open_values.extend(part)
            elif isinstance(part, dict):
                open_values.extend(part.values())
                weight += sum(len(key) for key in part if isinstance(key, str))
        return weight

    def _printable(self, value: Any) -> Any:
        """What an expression may print: no methods or generators, whose text would differ from run to run."""
        if isinstance(value, str | int | float | Undefined) or value is None:
            return value
        if isinstance(value, list | dict | tuple):
            self.fits(self._weigh(value))
        elif callable(value) or hasattr(value, "__next__"):
            what = f"a {type(value).__name__} can't be printed"
            raise RenderFailed(f"{what}; add `| list`, call it, or write ['name'] for a key of that name")
        return value

    def _product(self, operator: str, left: Any, right: Any) -> None:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, str | list | tuple) and isinstance(other, int):
                self.fits(self._weigh(one) * max(other, 0))
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * max(right, 0) if operator == "**" else left.bit_length() + right.bit_length()
            if bits > MAX_BITS:
                raise RenderFailed("the template makes a number that is too large")

    def _join(self, parts: Iterable[str]) -> str:
        whole: list[str] = []
        size = 0
        for part in parts:
            size += len(part)
            self.fits(size)
            whole.append(part)
        return "".join(whole)

    def _guarded(self, obj: Any, name: Any, value: Any) -> Any:
        guard = _GUARDS.get(name) if isinstance(obj, str) and isinstance(name, str) and callable(value) else None
        return value if guard is None else partial(guard, self, obj, value)

    def _generate(self, source: nodes.Template, *args: Any, **options: Any) -> str:
        for node in list(source.find_all((nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block))):
            count = self._counted(node, "step" if isinstance(node, nodes.For) else "entry")
            node.body.insert(0, count)  # type: ignore[attr-defined]
        source.body.insert(0, self._counted(source, "entry"))
        return super()._generate(source, *args, **options)

    def _counted(self, node: nodes.Node, name: str) -> nodes.Node:
        attribute = nodes.EnvironmentAttribute(name, lineno=node.lineno)
        return nodes.ExprStmt(attribute, lineno=node.lineno).set_environment(self)


def _bounded_range(*args: int) -> range:
    whole = range(*args)
    if len(whole) > MAX_RANGE:
        raise RenderFailed(f"range() gives more than {MAX_RANGE:,} numbers")
    current = CURRENT.get()
    if current is not None:
        current.spend(len(whole))
    return whole


def _check_widths(args: Iterable[Any]) -> None:
    if any(isinstance(arg, int) and arg > MAX_WIDTH for arg in args):
        raise RenderFailed(f"a width of more than {MAX_WIDTH:,} is not allowed in a template")


def _narrow(inner: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose numbers are bounded; it keeps the mark that says what Jinja2 passes to it."""

    def bounded(*args: Any, **options: Any) -> Any:
        _check_widths([*args, *options.values()])
        return inner(*args, **options)

    bounded.__dict__.update(inner.__dict__)
    return bounded


def _weighed(env: TemplateEnvironment, inner: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that prints a value: refused where that value is too large."""

    def bounded(*args: Any, **options: Any) -> Any:
        env.fits(sum(env._weigh(arg) for arg in args))  # noqa: SLF001 of one module
        return inner(*args, **options)

    bounded.__dict__.update(inner.__dict__)
    return bounded


def _indent(env: TemplateEnvironment, text: Any, width: Any = 4, *args: Any, **options: Any) -> str:
    from jinja2.filters import do_indent

    _check_widths([width])
    string = str(text)
    env.fits(len(string) + (string.count("\n") + 1) * (width if isinstance(width, int) else len(str(width))))
    return do_indent(string, width, *args, **options)


def _percent(env: TemplateEnvironment, template: Any, *args: Any, **options: Any) -> str:
    """`%` formatting as an operator (one value) and as a filter (several, or by name)."""
    string = str(template)
    if _WIDE.search(string):
        raise RenderFailed("a width of five digits or `*` is not allowed in a format")
    values = args[0] if len(args) == 1 and isinstance(args[0], tuple | dict) else args
    result = string % (options or values)
    env.fits(len(result))
    return result


def _replace(env: TemplateEnvironment, text: Any, old: Any, new: Any, count: int | None = None) -> str:
    string, before, after = str(text), str(old), str(new)
    found = string.count(before) if count is None or count < 0 else min(count, string.count(before))
    env.fits(len(string) + found * len(after))
    return string.replace(before, after, -1 if count is None else count)


def _replace_method(env: TemplateEnvironment, text: str, _: Any, old: str, new: str, count: int = -1) -> str:
    return _replace(env, text, old=old, new=new, count=count)


def _join_filter(
    env: TemplateEnvironment, value: Iterable[Any], d: Any = "", attribute: str | int | None = None
) -> str:
    from jinja2.filters import make_attrgetter

    items = value if attribute is None else map(make_attrgetter(env, attribute), value)
    return _join_method(env, str(d), str(d).join, map(str, items))


def _join_method(env: TemplateEnvironment, text: str, method: Callable[[list[str]], str], parts: Iterable[str]) -> str:
    whole: list[str] = []
    size = 0
    for part in parts:
        size += len(part) + len(text)
        env.fits(size)
        whole.append(part)
    return method(whole)


def _width_method(_: TemplateEnvironment, __: str, method: Callable[..., str], *args: Any, **options: Any) -> str:
    _check_widths([*args, *options.values()])
    return method(*args, **options)


def _format_method(env: TemplateEnvironment, text: str, method: Callable[..., str], *args: Any, **options: Any) -> str:
    if _WIDE.search(text):
        raise RenderFailed("a width of five digits or `*` is not allowed in a format")
    given = args[0].values() if args and isinstance(args[0], dict) else ()
    _check_widths([*args, *options.values(), *given] if re.search(r"\{[^}]*\{", text) else [])
    result = method(*args, **options)
    env.fits(len(result))
    return result


_GUARDS: dict[str, Callable[..., str]] = {
    "replace": _replace_method,
    "join": _join_method,
    "format": _format_method,
    "format_map": _format_method,
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "expandtabs"), _width_method),
}
