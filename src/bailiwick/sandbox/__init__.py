"""Sandboxes around agents and their code: what a process sees, may write, may reach, and how much it may use."""
