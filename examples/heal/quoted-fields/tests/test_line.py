from csvlite.line import fields


def test_plain():
    assert fields("a,b,c") == ["a", "b", "c"]


def test_quoted():
    assert fields('1,"Smith, John",x') == ["1", "Smith, John", "x"]


def test_empty_fields():
    assert fields(",,") == ["", "", ""]
