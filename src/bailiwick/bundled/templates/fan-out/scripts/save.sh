# The workspace belongs to the run and is kept across stops and resumes.
echo "$1" > "$BAILIWICK_WORKSPACE/summary.txt"
