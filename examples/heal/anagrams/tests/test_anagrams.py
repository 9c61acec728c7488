from wordplay.anagrams import are_anagrams


def test_anagrams():
    assert are_anagrams("Listen", "Silent") is True


def test_other_letters():
    assert are_anagrams("cat", "dog") is False


def test_as_often():
    assert are_anagrams("aab", "abb") is False
