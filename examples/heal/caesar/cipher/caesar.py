"""A very old cipher."""


def shift(text: str, by: int) -> str:
    """The text with each small letter moved on in the alphabet."""
    out = ""
    for sign in text:
        if "a" <= sign <= "z":
            sign = chr(ord(sign) + by)
        out += sign
    return out
