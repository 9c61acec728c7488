"""`init`: a gate for a repository, found by trying, or by asking an agent for a plan."""
