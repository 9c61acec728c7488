"""What runs inside the sandbox for a check: sent there as text, so that nothing of it lies in the tree."""
