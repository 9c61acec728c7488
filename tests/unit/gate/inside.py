"""The texts that run inside of a sandbox, joined as they are there: in one namespace."""

from __future__ import annotations

from bailiwick.gate.plugin import asking, calls, nearby, parts, surroundings

for _module in (calls, parts, asking):
    for _other in (nearby, surroundings, calls, parts, asking):
        for _name, _value in vars(_other).items():
            if not _name.startswith("__"):
                vars(_module).setdefault(_name, _value)

Nearby = asking.Nearby
