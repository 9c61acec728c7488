"""Programs about texts, tables, trees and ways."""

from __future__ import annotations

from tests.security.programs.model import Program

TEXTS: tuple[Program, ...] = (
    Program(
        "brackets",
        '"""Brackets that fit."""\n\nPAIRS = {")": "(", "]": "["}\n\n\ndef fits(text):\n    open_ones = []\n    for sign in text:\n        if sign in "([":\n            open_ones.append(sign)\n        elif sign in PAIRS and (not open_ones or open_ones.pop() != PAIRS[sign]):\n            return False\n    return not open_ones\n',
        "    return not open_ones",
        "    return True",
        "    return len(open_ones) < 2",
        (('fits("([])")', "True"), ('fits("(")', "False"), ('fits("(]")', "False"), ('fits("((")', "False")),
    ),
    Program(
        "distance",
        '"""How many changes make one word another."""\n\n\ndef distance(one, other):\n    row = list(range(len(other) + 1))\n    for number, sign in enumerate(one, 1):\n        before, row = row, [number]\n        for at, there in enumerate(other, 1):\n            row.append(min(before[at] + 1, row[-1] + 1, before[at - 1] + (sign != there)))\n    return row[-1]\n',
        "            row.append(min(before[at] + 1, row[-1] + 1, before[at - 1] + (sign != there)))",
        "            row.append(min(before[at] + 1, row[-1] + 1, before[at - 1] + 1))",
        "            row.append(min(before[at] + 1, before[at - 1] + (sign != there)))",
        (
            ('distance("cat", "cut")', "1"),
            ('distance("abc", "abc")', "0"),
            ('distance("", "ab")', "2"),
            ('distance("kit", "kitten")', "3"),
        ),
    ),
    Program(
        "common",
        '"""The longest common part, with gaps."""\n\n\ndef common(one, other):\n    rows = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]\n    for i, a in enumerate(one):\n        for j, b in enumerate(other):\n            rows[i + 1][j + 1] = rows[i][j] + 1 if a == b else max(rows[i][j + 1], rows[i + 1][j])\n    return rows[-1][-1]\n',
        "            rows[i + 1][j + 1] = rows[i][j] + 1 if a == b else max(rows[i][j + 1], rows[i + 1][j])",
        "            rows[i + 1][j + 1] = rows[i][j] + 1 if a == b else rows[i][j + 1]",
        "            rows[i + 1][j + 1] = rows[i][j] + 1 if a == b else 0",
        (
            ('common("abcd", "acd")', "3"),
            ('common("ab", "ba")', "1"),
            ('common("", "a")', "0"),
            ('common("ac", "abcx")', "2"),
        ),
    ),
    Program(
        "lengths",
        '"""Runs as letter and count."""\n\n\ndef encode(text):\n    out = []\n    for sign in text:\n        if out and out[-1][0] == sign:\n            out[-1] = (sign, out[-1][1] + 1)\n        else:\n            out.append((sign, 1))\n    return "".join(f"{sign}{count}" for sign, count in out)\n',
        "        if out and out[-1][0] == sign:",
        "        if out and out[0][0] == sign:",
        "        if out and out[-1][0] <= sign:",
        (('encode("aab")', '"a2b1"'), ('encode("")', '""'), ('encode("abb")', '"a1b2"')),
    ),
    Program(
        "palindrome",
        '"""The same from both ends."""\n\n\ndef palindrome(text):\n    letters = [sign.lower() for sign in text if sign.isalpha()]\n    return letters == letters[::-1]\n',
        "    letters = [sign.lower() for sign in text if sign.isalpha()]",
        "    letters = [sign for sign in text if sign.isalpha()]",
        "    letters = [sign.lower() for sign in text]",
        (('palindrome("Anna")', "True"), ('palindrome("ab")', "False"), ('palindrome("a, A")', "True")),
    ),
    Program(
        "reverse_polish",
        '"""Sums with the sign behind."""\n\n\ndef value(text):\n    stack = []\n    for word in text.split():\n        if word in "+-*":\n            right, left = stack.pop(), stack.pop()\n            stack.append({"+": left + right, "-": left - right, "*": left * right}[word])\n        else:\n            stack.append(int(word))\n    return stack[0]\n',
        "            right, left = stack.pop(), stack.pop()",
        "            left, right = stack.pop(), stack.pop()",
        "            left = right = stack.pop()",
        (('value("5 3 -")', "2"), ('value("2 3 + 4 *")', "20"), ('value("7")', "7")),
    ),
    Program(
        "shift",
        '"""Letters moved on."""\n\n\ndef shifted(text, by):\n    return "".join(chr((ord(sign) - 97 + by) % 26 + 97) if sign.islower() else sign for sign in text)\n',
        '    return "".join(chr((ord(sign) - 97 + by) % 26 + 97) if sign.islower() else sign for sign in text)',
        '    return "".join(chr(ord(sign) + by) if sign.islower() else sign for sign in text)',
        '    return "".join(chr((ord(sign) - 97 + by) % 25 + 97) if sign.islower() else sign for sign in text)',
        (('shifted("xyz", 3)', '"abc"'), ('shifted("a b", 1)', '"b c"'), ('shifted("yb", 1)', '"zc"')),
    ),
    Program(
        "knapsack",
        '"""The most that a bag can hold."""\n\n\ndef most(things, room):\n    best = [0] * (room + 1)\n    for weight, worth in things:\n        for space in range(room, weight - 1, -1):\n            best[space] = max(best[space], best[space - weight] + worth)\n    return best[room]\n',
        "        for space in range(room, weight - 1, -1):",
        "        for space in range(weight, room + 1):",
        "        for space in range(room, weight, -1):",
        (
            ("most([(2, 3)], 4)", "3"),
            ("most([(1, 1), (3, 4)], 4)", "5"),
            ("most([], 3)", "0"),
            ("most([(4, 9)], 4)", "9"),
        ),
    ),
    Program(
        "walk",
        '"""The shortest way in a net."""\n\n\ndef steps(net, start, end):\n    seen, edge, count = {start}, [start], 0\n    while edge:\n        if end in edge:\n            return count\n        edge = [there for here in edge for there in net.get(here, ()) if there not in seen]\n        seen.update(edge)\n        count += 1\n    return -1\n',
        "    return -1",
        "    return count",
        "    return 0",
        (
            ('steps({"a": "b", "b": "c"}, "a", "c")', "2"),
            ('steps({"a": "b"}, "b", "a")', "-1"),
            ('steps({}, "a", "a")', "0"),
        ),
    ),
    Program(
        "order",
        '"""First things first."""\n\n\ndef ordered(needs):\n    out = []\n\n    def visit(name):\n        if name in out:\n            return\n        for other in sorted(needs.get(name, ())):\n            visit(other)\n        out.append(name)\n\n    for name in sorted(needs):\n        visit(name)\n    return out\n',
        "        out.append(name)",
        "        out.insert(0, name)",
        "        out[len(out) // 2 :] = [*out[len(out) // 2 :], name] if len(out) < 2 else [name, *out[len(out) // 2 :]]",
        (
            ('ordered({"a": ["b"], "b": []})', '["b", "a"]'),
            ("ordered({})", "[]"),
            ('ordered({"a": ["c"], "b": ["a"], "c": []})', '["c", "a", "b"]'),
        ),
    ),
    Program(
        "matrix",
        '"""Matrices."""\n\n\ndef product(one, other):\n    return [[sum(a * b for a, b in zip(row, column)) for column in zip(*other)] for row in one]\n',
        "    return [[sum(a * b for a, b in zip(row, column)) for column in zip(*other)] for row in one]",
        "    return [[sum(a * b for a, b in zip(row, column)) for column in other] for row in one]",
        "    return [[sum(a + b for a, b in zip(row, column)) for column in zip(*other)] for row in one]",
        (
            ("product([[1, 2]], [[3], [4]])", "[[11]]"),
            ("product([[1, 2], [3, 4]], [[0, 1], [1, 0]])", "[[2, 1], [4, 3]]"),
        ),
    ),
    Program(
        "search_tree",
        '"""A tree as (left, value, right)."""\n\n\ndef added(tree, value):\n    if tree is None:\n        return (None, value, None)\n    left, here, right = tree\n    if value < here:\n        return (added(left, value), here, right)\n    return (left, here, added(right, value))\n\n\ndef walked(tree):\n    return [] if tree is None else [*walked(tree[0]), tree[1], *walked(tree[2])]\n',
        "    if value < here:",
        "    if value > here:",
        "    if value < here - 1:",
        (
            ("walked(added(added(None, 2), 1))", "[1, 2]"),
            ("walked(added(added(added(None, 2), 3), 1))", "[1, 2, 3]"),
            ("walked(None)", "[]"),
        ),
    ),
    Program(
        "triangle",
        '"""Rows of a triangle of sums."""\n\n\ndef row(number):\n    out = [1]\n    for _ in range(number):\n        out = [a + b for a, b in zip([0, *out], [*out, 0])]\n    return out\n',
        "        out = [a + b for a, b in zip([0, *out], [*out, 0])]",
        "        out = [a + b for a, b in zip([1, *out], [*out, 1])]",
        "        out = [a + b for a, b in zip([0, *out], [*out, 1])]",
        (("row(0)", "[1]"), ("row(1)", "[1, 1]"), ("row(4)", "[1, 4, 6, 4, 1]")),
    ),
)
