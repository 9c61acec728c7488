"""Secrets taken out of what is kept or shown."""
