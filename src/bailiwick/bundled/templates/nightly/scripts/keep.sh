echo "$1" >> "$BAILIWICK_WORKSPACE/reports.txt"
