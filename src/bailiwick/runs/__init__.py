"""Runs: starting, finding, steering and explaining them."""
