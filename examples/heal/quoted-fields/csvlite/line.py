"""Reading lines of comma-separated values."""


def fields(line: str) -> list[str]:
    """The fields of a line; quotes keep commas together."""
    found, field, quoted = [], "", False
    for sign in line:
        if sign == '"':
            quoted = not quoted
        elif sign == ",":
            found.append(field)
            field = ""
        else:
            field += sign
    return [*found, field]
