"""Git that runs nothing of a repository: our own store of objects, snapshots, worktrees, branches that we publish."""
