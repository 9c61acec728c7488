echo "this goes wrong" >&2
exit 9
