"""Opens what a command or the service works with: store, clock, sandboxes, agents, routing, brain."""
