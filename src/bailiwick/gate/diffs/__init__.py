"""What can be read from a diff before anything runs. Pure: bytes in, findings out."""
