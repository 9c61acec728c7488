"""Ways to put a process into a sandbox, one file each behind `bailiwick.sandbox.port`."""
