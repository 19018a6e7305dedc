# Runs a command tool: the input first, then the program and its arguments. What it writes is the answer; what it
# complains about is told only if it fails.
input=$1
shift
complaints=$(mktemp) || exit 126
printf '%s' "$input" | "$@" 2>"$complaints"
code=$?
if [ "$code" -ne 0 ] && [ -s "$complaints" ]; then
    printf '\n[it complained: %s]\n' "$(tail -c 2000 "$complaints")"
fi
rm -f "$complaints"
exit "$code"
