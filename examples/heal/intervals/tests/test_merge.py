from spans.merge import merge


def test_overlapping():
    assert merge([(5, 8), (1, 6)]) == [(1, 8)]


def test_touching():
    assert merge([(1, 3), (3, 5)]) == [(1, 5)]


def test_apart():
    assert merge([(1, 2), (4, 5)]) == [(1, 2), (4, 5)]


def test_inside():
    assert merge([(1, 9), (2, 3)]) == [(1, 9)]
