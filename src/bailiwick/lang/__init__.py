"""The workflow language: YAML with positions, checks that name every problem at once, templates, the compiled graph."""
