from paging.pages import page_count


def test_full_pages():
    assert page_count(20, 10) == 2


def test_one_more():
    assert page_count(21, 10) == 3


def test_nothing():
    assert page_count(0, 10) == 0
