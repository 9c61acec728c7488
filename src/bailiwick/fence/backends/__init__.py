"""Ways to fence a process in, one file each behind `bailiwick.fence.port`."""
