# The checks that the tests are written in. `suite` says whose test runs.
# shellcheck shell=sh disable=SC2154 # suite: set by tests/run.sh
total=0
failures=''

# passed NAME: counts one good result.
passed() {
    total=$((total + 1))
    printf 'ok %d - %s: %s\n' "$total" "$suite" "$1"
}

# failed NAME WHY: counts one bad result.
failed() {
    total=$((total + 1))
    printf 'not ok %d - %s: %s\n# %s\n' "$total" "$suite" "$1" "$2"
    failures="${failures}check_failed: $suite: $1: $2
"
}

# same NAME WANT GOT: the two strings are equal.
same() {
    if [ "$2" = "$3" ]; then
        passed "$1"
    else
        failed "$1" "expected $2, got $3"
    fi
}

# gives NAME WANT INPUT TOOL [ARG...]: `wordkit TOOL ARG...` makes exactly WANT
# of INPUT. Both are written with \n and \t, as printf reads them.
gives() {
    name=$1
    want=$2
    input=$3
    shift 3
    if got=$(printf '%b' "$input" | sh bin/wordkit "$@" 2>&1 && printf .); then
        if [ "$got" = "$(printf '%b.' "$want")" ]; then
            passed "$name"
        else
            failed "$name" "expected \"$want\", got \"$(printf '%s' "${got%.}" | visible)\""
        fi
    else
        failed "$name" "wordkit $1 ended with an error: $(printf '%s' "$got" | visible)"
    fi
}

# visible: writes its input on one line, with \n and \t for what breaks it up.
visible() {
    awk '{ gsub(/\t/, "\\\\t"); gsub(/\r/, "\\\\r"); printf "%s\\n", $0 }'
}

# finish: ends the run; exit 1 when anything failed.
finish() {
    printf '1..%d\n' "$total"
    if [ -n "$failures" ]; then
        printf '%s' "$failures" >&2
        exit 1
    fi
    exit 0
}
