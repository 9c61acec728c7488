"""Roman numerals."""

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def to_number(text: str) -> int:
    """The number that a Roman numeral stands for."""
    total = 0
    for here, after in zip(text, text[1:] + "I"):
        value = VALUES[here]
        total += value
    return total
