from cipher.caesar import shift


def test_in_the_middle():
    assert shift("abc", 2) == "cde"


def test_over_the_end():
    assert shift("xyz", 3) == "abc"


def test_back_again():
    assert shift(shift("hello, world", 11), -11) == "hello, world"
