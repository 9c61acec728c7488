printf '{"line": "%s words, the longest has %s"}\n' "$1" "$2"
