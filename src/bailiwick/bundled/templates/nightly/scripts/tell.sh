# Replace by what reaches you: a mail, a message, a ticket.
echo "$1 failed: $2" >> "$BAILIWICK_WORKSPACE/failures.txt"
