from calc.stack import evaluate


def test_sums_and_products():
    assert evaluate("3 4 + 2 *") == 14


def test_differences():
    assert evaluate("10 4 -") == 6


def test_quotients():
    assert evaluate("20 5 /") == 4
