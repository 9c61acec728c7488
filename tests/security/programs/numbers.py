"""Programs about numbers."""

from __future__ import annotations

from tests.security.programs.model import Program

NUMBERS: tuple[Program, ...] = (
    Program(
        "gcd",
        '"""Greatest common divisor."""\n\n\ndef gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a\n',
        "        a, b = b, a % b",
        "        a, b = b, a // b if a % b else 0",
        "        a, b = b, (a - b) % b if a > b * 9 else 0",
        (("gcd(12, 18)", "6"), ("gcd(17, 5)", "1"), ("gcd(9, 0)", "9"), ("gcd(48, 36)", "12")),
    ),
    Program(
        "primes",
        '"""Primes below a limit."""\n\n\ndef primes(limit):\n    out = []\n    for number in range(2, limit):\n        if all(number % other for other in out):\n            out.append(number)\n    return out\n',
        "    for number in range(2, limit):",
        "    for number in range(3, limit):",
        "    for number in range(2, limit - 1):",
        (("primes(12)", "[2, 3, 5, 7, 11]"), ("primes(2)", "[]"), ("primes(3)", "[2]")),
    ),
    Program(
        "factors",
        '"""Prime factors."""\n\n\ndef factors(number):\n    out, divisor = [], 2\n    while divisor * divisor <= number:\n        while number % divisor == 0:\n            out.append(divisor)\n            number //= divisor\n        divisor += 1\n    if number > 1:\n        out.append(number)\n    return out\n',
        "    while divisor * divisor <= number:",
        "    while divisor * divisor < number:",
        "    while divisor * divisor < number - 1:",
        (("factors(12)", "[2, 2, 3]"), ("factors(49)", "[7, 7]"), ("factors(13)", "[13]"), ("factors(1)", "[]")),
    ),
    Program(
        "power",
        '"""Powers by squaring."""\n\n\ndef power(base, exponent, modulus):\n    out = 1\n    while exponent:\n        if exponent % 2:\n            out = out * base % modulus\n        base = base * base % modulus\n        exponent //= 2\n    return out\n',
        "            out = out * base % modulus",
        "            out = out + base % modulus",
        "            out = base % modulus",
        (("power(2, 10, 1000)", "24"), ("power(3, 0, 7)", "1"), ("power(5, 3, 13)", "8")),
    ),
    Program(
        "roman",
        '"""Numbers as the Romans wrote them."""\n\nPARTS = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))\n\n\ndef roman(number):\n    out = ""\n    for value, text in PARTS:\n        while number >= value:\n            out += text\n            number -= value\n    return out\n',
        "        while number >= value:",
        "        if number >= value:",
        "        while number > value:",
        (("roman(3)", '"III"'), ("roman(14)", '"XIV"'), ("roman(29)", '"XXIX"'), ("roman(4)", '"IV"')),
    ),
    Program(
        "bases",
        '"""Numbers in other bases."""\n\nDIGITS = "0123456789abcdef"\n\n\ndef to_base(number, base):\n    out = ""\n    while number:\n        out = DIGITS[number % base] + out\n        number //= base\n    return out or "0"\n',
        "        out = DIGITS[number % base] + out",
        "        out = out + DIGITS[number % base]",
        "        out = DIGITS[number % 10] + out",
        (
            ("to_base(10, 2)", '"1010"'),
            ("to_base(255, 16)", '"ff"'),
            ("to_base(0, 8)", '"0"'),
            ("to_base(11, 8)", '"13"'),
        ),
    ),
    Program(
        "root",
        '"""Whole square roots."""\n\n\ndef root(number):\n    low, high = 0, number + 1\n    while high - low > 1:\n        middle = (low + high) // 2\n        if middle * middle <= number:\n            low = middle\n        else:\n            high = middle\n    return low\n',
        "        if middle * middle <= number:",
        "        if middle * middle < number:",
        "        if middle * middle < number + 0.5 and middle != 3:",
        (("root(16)", "4"), ("root(17)", "4"), ("root(0)", "0"), ("root(9)", "3"), ("root(15)", "3")),
    ),
    Program(
        "change",
        '"""The fewest coins."""\n\n\ndef coins(amount, kinds):\n    best = [0] + [amount + 1] * amount\n    for value in range(1, amount + 1):\n        for coin in kinds:\n            if coin <= value:\n                best[value] = min(best[value], best[value - coin] + 1)\n    return best[amount] if best[amount] <= amount else None\n',
        "                best[value] = min(best[value], best[value - coin] + 1)",
        "                best[value] = best[value - coin] + 1",
        "                best[value] = min(best[value], best[value - coin])",
        (
            ("coins(6, [4, 3, 1])", "2"),
            ("coins(8, [1, 5])", "4"),
            ("coins(3, [2])", "None"),
            ("coins(6, [1, 3, 4])", "2"),
        ),
    ),
    Program(
        "leap",
        '"""Leap years and the days of a month."""\n\n\ndef leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n\n\ndef days(year, month):\n    if month == 2:\n        return 29 if leap(year) else 28\n    return 30 if month in (4, 6, 9, 11) else 31\n',
        "    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
        "    return year % 4 == 0 and year % 100 != 0",
        "    return year % 4 == 0",
        (("days(2000, 2)", "29"), ("days(1900, 2)", "28"), ("days(2024, 2)", "29"), ("days(2023, 4)", "30")),
    ),
    Program(
        "collatz",
        '"""How long a series is."""\n\n\ndef steps(number):\n    count = 0\n    while number != 1:\n        number = number // 2 if number % 2 == 0 else 3 * number + 1\n        count += 1\n    return count\n',
        "        count += 1",
        "        count += number % 2",
        "        count += 2",
        (("steps(1)", "0"), ("steps(6)", "8"), ("steps(2)", "1")),
    ),
    Program(
        "digits",
        '"""Sums of digits."""\n\n\ndef digit_sum(number):\n    out = 0\n    while number:\n        number, last = divmod(number, 10)\n        out += last\n    return out\n',
        "        out += last",
        "        out = last",
        "        out += number",
        (("digit_sum(123)", "6"), ("digit_sum(0)", "0"), ("digit_sum(909)", "18")),
    ),
)
