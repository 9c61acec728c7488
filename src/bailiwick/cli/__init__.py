"""The command line: a lazy root, output, and nothing that decides."""
