"""Lists in pages."""


def page_count(items: int, size: int) -> int:
    """How many pages so many items take."""
    return items // size
