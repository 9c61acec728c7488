echo x >> "$BAILIWICK_WORKSPACE/looks"
looks=$(grep -c x "$BAILIWICK_WORKSPACE/looks")
test "$looks" -ge 3 || exit 1
printf '{"looks": %d}\n' "$looks"
