"""The gate: what a change has to pass before people are asked to look at it."""
