from cards.luhn import is_valid


def test_an_even_number_of_digits():
    assert is_valid("4539578763621486") is True
    assert is_valid("4539578763621487") is False


def test_an_odd_number_of_digits():
    assert is_valid("79927398713") is True
    assert is_valid("79927398710") is False
