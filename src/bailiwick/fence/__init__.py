"""The fence: sandboxes around agents and their code, git that runs nothing of theirs, worktrees, environments."""
