"""Routing policies replayed over a recorded log or a simulated world."""
