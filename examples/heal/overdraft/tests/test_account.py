from bank.account import Account


def test_part_of_it():
    account = Account(100)
    assert account.withdraw(30) is True
    assert account.balance == 70


def test_all_of_it():
    account = Account(100)
    assert account.withdraw(100) is True
    assert account.balance == 0


def test_more_than_there_is():
    account = Account(100)
    assert account.withdraw(101) is False
    assert account.balance == 100
