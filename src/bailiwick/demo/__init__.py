"""The demonstration: everything real, in a temporary directory, in under a minute."""
