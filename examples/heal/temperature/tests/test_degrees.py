from weather.degrees import to_celsius


def test_freezing():
    assert to_celsius(32) == 0


def test_boiling():
    assert to_celsius(212) == 100


def test_fever():
    assert to_celsius(100) == 37.8
