"""Workflows on disk: finding, checking and making them."""
