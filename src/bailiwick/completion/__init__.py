"""Completion in a shell: the script for it, and what is completed."""
