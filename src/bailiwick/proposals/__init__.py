"""Proposals: gated changes offered to people, here or on a forge. Nothing in here merges."""
