import pytest

from calendar_rules.leap import is_leap


@pytest.mark.parametrize("year", [1996, 2000, 2024, 2400])
def test_leap_years(year):
    assert is_leap(year) is True


@pytest.mark.parametrize("year", [1900, 2023, 2100, 2200])
def test_common_years(year):
    assert is_leap(year) is False
