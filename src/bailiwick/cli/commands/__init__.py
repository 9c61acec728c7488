"""The commands, each with its options and what it prints; what they do is in the packages below."""
