# Cargo starts every test program through this: what it lists, what it logs and how it ends is told over the handle
# BAILIWICK_PIPE, each line with the token of this run, which the program itself is not given.
program=$1
shift
pipe=$BAILIWICK_PIPE
token=$BAILIWICK_TOKEN
plain=$BAILIWICK_PLAIN
unset BAILIWICK_PIPE BAILIWICK_TOKEN BAILIWICK_PLAIN
name=${program##*/}
tell() { printf '%s %s %s\n' "$token" "$1" "$2" >"/proc/self/fd/$pipe"; }
case "$program" in
*/deps/*) ;;
*) exec "$program" "$@" ;;
esac
case " $plain " in
*" ${name%-*} "*)
    tell begin "$program"
    "$program" "$@"
    code=$?
    tell single "$code"
    tell end "$code"
    exit "$code"
    ;;
esac
folder=$(mktemp -d) || exit 125
tell begin "$program"
"$program" "$@" --list --format terse >"$folder/list" 2>/dev/null </dev/null
while IFS= read -r line; do tell list "$line"; done <"$folder/list"
"$program" "$@" --logfile "$folder/log"
code=$?
echo >&2 # what cargo says next begins a line of its own
[ -f "$folder/log" ] && while IFS= read -r line; do tell log "$line"; done <"$folder/log"
tell end "$code"
rm -rf "$folder"
exit "$code"
