echo "round $1"
