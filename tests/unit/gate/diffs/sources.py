"""Small Python programs for Hypothesis: functions, classes and statements that can be run."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = st.sampled_from(["alpha", "beta", "gamma", "delta"])
_BODIES = (
    "return n + 1",
    "total = n\n    return total * 2",
    "if n > 3:\n        return n\n    return 0",
    "for i in range(n):\n        n += i\n    return n",
    "def inner(k):\n        return k - 1\n    return inner(n)",
    "@staticmethod\n    def inner(k):\n        return k - 1\n    return inner(n)",
    "try:\n        return 10 // n\n    except ZeroDivisionError:\n        return -1",
    "with open(__file__) if False else memoryview(b'a') as view:\n        return len(view) + n",
    "'''Says what it does.'''\n    return n",
    "'''Over\n    lines.'''\n    while n > 2:\n        n -= 2\n    return n",
    "'''Only this.'''",
    "x = [\n        n,\n        n,\n    ]; return sum(x)",
    "match n:\n        case 1:\n            return 5\n        case _:\n            return n",
    "global seen; seen = n; return seen",
    "return (yield_ := n)",
)
_SHORT = ("def {name}(n): return n * 3", "def {name}(n): '''doc'''; return n", "{name} = lambda n: n")


@st.composite
def functions(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> str:
    """A function of one argument, decorated or not, with some docstring or none."""
    name = draw(names)
    if draw(st.booleans()):
        return draw(st.sampled_from(_SHORT)).format(name=name)
    body = draw(st.sampled_from(_BODIES))
    return f"def {name}(n):\n    {body}"


@st.composite
def modules(draw: st.DrawFn) -> str:
    """A module of statements, functions and classes."""
    parts = [draw(st.sampled_from(["import math", "LIMIT = 3", "'''Text.'''", "# a comment"]))]
    for index in range(draw(st.integers(1, 4))):
        name = st.just(f"{draw(NAMES)}_{index}")
        function = draw(functions(name))
        if draw(st.booleans()):
            inner = "\n".join(f"    {line}" if line else line for line in function.splitlines())
            parts.append(f"class Holder{index}:\n    size = {index}\n{inner}")
        else:
            parts.append(function)
    return "\n\n".join(parts) + "\n"
