printf '{"letters": %d}\n' "${#1}"
