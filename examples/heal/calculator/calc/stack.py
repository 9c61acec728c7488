"""A calculator in reverse Polish notation."""


def evaluate(text: str) -> float:
    """The value of an expression such as `3 4 + 2 *`."""
    stack: list[float] = []
    for word in text.split():
        if word in "+-*/":
            a, b = stack.pop(), stack.pop()
            stack.append({"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[word]())
        else:
            stack.append(float(word))
    return stack.pop()
