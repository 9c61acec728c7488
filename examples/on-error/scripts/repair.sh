printf '{"repaired": "%s"}\n' "$1"
