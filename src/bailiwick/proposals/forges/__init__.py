"""The ways a proposal leaves this machine: one file each."""
