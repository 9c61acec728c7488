"""The ways to reach an agent, one file each, reached by name."""
