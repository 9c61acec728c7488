# Exit 0 when the input is there, 1 while it is not. Replace the line below by a look at what you wait for.
test -d "$BAILIWICK_WORKSPACE"
