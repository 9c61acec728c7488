from numerals.roman import to_number


def test_added():
    assert to_number("MDCLXVI") == 1666


def test_subtracted():
    assert to_number("XIV") == 14
    assert to_number("MCMXC") == 1990


def test_single():
    assert to_number("I") == 1
