from search.binary import find


def test_every_item_is_found():
    items = [2, 3, 5, 7, 11, 13]
    assert [find(items, item) for item in items] == [0, 1, 2, 3, 4, 5]


def test_what_is_not_there():
    assert find([2, 3, 5], 4) == -1
    assert find([], 1) == -1


def test_a_list_of_one():
    assert find([9], 9) == 0
