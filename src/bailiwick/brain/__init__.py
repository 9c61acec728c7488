"""What was learned: notes in Markdown, each with where it comes from and whether a person approved it."""
