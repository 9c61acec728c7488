"""Cheap models first: chains, the verifier, attempts on record."""
