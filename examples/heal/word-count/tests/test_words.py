from text.words import count


def test_capital_letters_make_no_other_word():
    assert count("The cat and the dog")["the"] == 2


def test_signs_are_no_part_of_a_word():
    assert count("yes, yes! Yes.")["yes"] == 3


def test_no_words():
    assert count("") == {}
