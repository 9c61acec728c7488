for number in $(seq "$2"); do echo "$1, copy $number" >> "$BAILIWICK_WORKSPACE/copies.txt"; done
printf '{"lines": %d}\n' "$2"
