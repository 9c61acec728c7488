"""Check digits."""


def is_valid(number: str) -> bool:
    """Whether the last digit of a card number fits the others."""
    total = 0
    for place, digit in enumerate(map(int, number)):
        if place % 2 == 1:
            digit = digit * 2 - 9 if digit > 4 else digit * 2
        total += digit
    return total % 10 == 0
