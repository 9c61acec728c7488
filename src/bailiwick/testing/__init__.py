"""Shipped fakes and the suites that every implementation of a port has to pass."""
