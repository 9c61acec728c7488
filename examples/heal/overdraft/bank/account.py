"""Accounts."""


class Account:
    """Money that somebody has."""

    def __init__(self, balance: int = 0) -> None:
        self.balance = balance

    def withdraw(self, amount: int) -> bool:
        """Take money out; False where there is not enough."""
        if amount >= self.balance:
            return False
        self.balance -= amount
        return True
