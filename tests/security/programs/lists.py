"""Programs about lists: sorting, searching, walking."""

from __future__ import annotations

from tests.security.programs.model import Program

LISTS: tuple[Program, ...] = (
    Program(
        "bubble",
        '"""Sort by exchanging neighbours."""\n\n\ndef bubble(items):\n    out = list(items)\n    for end in range(len(out) - 1, 0, -1):\n        for at in range(end):\n            if out[at] > out[at + 1]:\n                out[at], out[at + 1] = out[at + 1], out[at]\n    return out\n',
        "    for end in range(len(out) - 1, 0, -1):",
        "    for end in range(len(out) - 1, 1, -1):",
        "    for end in range(len(out) - 2, 0, -1):",
        (("bubble([2, 1])", "[1, 2]"), ("bubble([3, 2, 1])", "[1, 2, 3]"), ("bubble([])", "[]")),
    ),
    Program(
        "merge",
        '"""Sort by merging."""\n\n\ndef merge_sort(items):\n    if len(items) < 2:\n        return list(items)\n    half = len(items) // 2\n    left, right, out = merge_sort(items[:half]), merge_sort(items[half:]), []\n    while left and right:\n        out.append(left.pop(0) if left[0] <= right[0] else right.pop(0))\n    return out + left + right\n',
        "    return out + left + right",
        "    return out + left",
        "    return out + right",
        (("merge_sort([3, 1, 2])", "[1, 2, 3]"), ("merge_sort([1, 2])", "[1, 2]"), ("merge_sort([2, 1])", "[1, 2]")),
    ),
    Program(
        "quick",
        '"""Sort by parting."""\n\n\ndef quick(items):\n    if not items:\n        return []\n    first, *rest = items\n    low = [item for item in rest if item < first]\n    high = [item for item in rest if item >= first]\n    return [*quick(low), first, *quick(high)]\n',
        "    high = [item for item in rest if item >= first]",
        "    high = [item for item in rest if item > first]",
        "    high = [item for item in rest if item > first + 1]",
        (("quick([3, 1, 3])", "[1, 3, 3]"), ("quick([2, 1, 3])", "[1, 2, 3]"), ("quick([])", "[]")),
    ),
    Program(
        "insertion",
        '"""Sort by inserting."""\n\n\ndef insertion(items):\n    out = []\n    for item in items:\n        at = len(out)\n        while at and out[at - 1] > item:\n            at -= 1\n        out.insert(at, item)\n    return out\n',
        "        while at and out[at - 1] > item:",
        "        if at and out[at - 1] > item:",
        "        while at > 1 and out[at - 1] > item:",
        (("insertion([3, 2, 1])", "[1, 2, 3]"), ("insertion([1, 2])", "[1, 2]"), ("insertion([2, 1])", "[1, 2]")),
    ),
    Program(
        "find",
        '"""Search by halving."""\n\n\ndef find(items, wanted):\n    low, high = 0, len(items)\n    while low < high:\n        middle = (low + high) // 2\n        if items[middle] < wanted:\n            low = middle + 1\n        else:\n            high = middle\n    return low if low < len(items) and items[low] == wanted else -1\n',
        "        if items[middle] < wanted:",
        "        if items[middle] <= wanted:",
        "        if items[middle] != wanted:",
        (
            ("find([1, 3, 5], 5)", "2"),
            ("find([1, 3, 5], 1)", "0"),
            ("find([1, 3, 5], 4)", "-1"),
            ("find([7], 7)", "0"),
            ("find([1, 3, 5, 9], 9)", "3"),
        ),
    ),
    Program(
        "rising",
        '"""The longest rising part."""\n\n\ndef rising(items):\n    best = [1] * len(items)\n    for at, item in enumerate(items):\n        for before in range(at):\n            if items[before] < item:\n                best[at] = max(best[at], best[before] + 1)\n    return max(best, default=0)\n',
        "    return max(best, default=0)",
        "    return best[-1] if best else 0",
        "    return sum(best)",
        (("rising([1, 5, 2])", "2"), ("rising([3, 2, 1])", "1"), ("rising([])", "0"), ("rising([1, 2, 3, 0])", "3")),
    ),
    Program(
        "largest_sum",
        '"""The largest sum of neighbours."""\n\n\ndef largest(items):\n    best = here = 0\n    for item in items:\n        here = max(0, here + item)\n        best = max(best, here)\n    return best\n',
        "        here = max(0, here + item)",
        "        here = here + item",
        "        here = max(item, item + 1)",
        (("largest([4, -5, 2, 1])", "4"), ("largest([-5, 4, 3])", "7"), ("largest([])", "0"), ("largest([-1])", "0")),
    ),
    Program(
        "window",
        '"""Means of a moving window."""\n\n\ndef means(items, size):\n    return [sum(items[at : at + size]) / size for at in range(len(items) - size + 1)]\n',
        "    return [sum(items[at : at + size]) / size for at in range(len(items) - size + 1)]",
        "    return [sum(items[at : at + size]) / size for at in range(len(items) - size)]",
        "    return [sum(items[at : at + size]) / size for at in range(len(items))]",
        (("means([1, 3, 5], 2)", "[2, 4]"), ("means([4], 1)", "[4]"), ("means([1], 2)", "[]")),
    ),
    Program(
        "rotate",
        '"""Turn a list."""\n\n\ndef rotate(items, by):\n    if not items:\n        return []\n    by %= len(items)\n    return items[-by:] + items[:-by] if by else list(items)\n',
        "    by %= len(items)",
        "    by = min(by, len(items) - 1)",
        "    by = by % (len(items) + 1)",
        (("rotate([1, 2, 3], 1)", "[3, 1, 2]"), ("rotate([1, 2, 3], 4)", "[3, 1, 2]"), ("rotate([], 2)", "[]")),
    ),
    Program(
        "flatten",
        '"""Lists within lists."""\n\n\ndef flatten(items):\n    out = []\n    for item in items:\n        if isinstance(item, list):\n            out.extend(flatten(item))\n        else:\n            out.append(item)\n    return out\n',
        "            out.extend(flatten(item))",
        "            out.extend(item)",
        "            out.append(flatten(item))",
        (("flatten([1, [2, [3]]])", "[1, 2, 3]"), ("flatten([])", "[]"), ("flatten([[1], 2])", "[1, 2]")),
    ),
    Program(
        "unique",
        '"""Each once, in order."""\n\n\ndef unique(items):\n    seen, out = set(), []\n    for item in items:\n        if item not in seen:\n            seen.add(item)\n            out.append(item)\n    return out\n',
        "        if item not in seen:",
        "        if not out or item != out[-1]:",
        "        if len(seen) < 2:",
        (
            ("unique([1, 2, 1])", "[1, 2]"),
            ("unique([3, 3])", "[3]"),
            ("unique([])", "[]"),
            ("unique([2, 1, 3])", "[2, 1, 3]"),
        ),
    ),
    Program(
        "intervals",
        '"""Spans that touch become one."""\n\n\ndef joined(spans):\n    out = []\n    for start, end in sorted(spans):\n        if out and start <= out[-1][1]:\n            out[-1] = (out[-1][0], max(end, out[-1][1]))\n        else:\n            out.append((start, end))\n    return out\n',
        "            out[-1] = (out[-1][0], max(end, out[-1][1]))",
        "            out[-1] = (out[-1][0], end)",
        "            out[-1] = (start, max(end, out[-1][1]))",
        (
            ("joined([(1, 9), (2, 3)])", "[(1, 9)]"),
            ("joined([(5, 6), (1, 2)])", "[(1, 2), (5, 6)]"),
            ("joined([(1, 3), (2, 5)])", "[(1, 5)]"),
        ),
    ),
)
