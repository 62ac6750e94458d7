#!/bin/sh
# The scripted agent of this example; the work command of the batch. It stands
# where a coding agent would: it reads the issue and the prompt that the harness
# wrote, edits files in the worktree it was started in, and ends. What it knows
# to write for an issue is in tools/edits/<id>.sh; whether that is right is for
# the verify command to say.
set -eu
LC_ALL=C
export LC_ALL

# give_up WHY: ends the work with an error of its own class.
give_up() {
    printf 'work_failed: %s\n' "$1" >&2
    exit 1
}

say() {
    printf 'agent: %s\n' "$1"
}

# think: a short pause; none where sleep knows whole seconds only.
think() {
    sleep 0.05 2>/dev/null || :
}

# edit FILE: puts its standard input in FILE.
edit() {
    mkdir -p "$(dirname -- "$1")"
    if [ -f "$1" ]; then verb=changing; else verb=writing; fi
    cat >"$1.tmp"
    mv -f "$1.tmp" "$1"
    say "$verb $1 ($(awk 'END { print NR }' "$1") lines)"
    case $1 in
    *.sh) sh -n "$1" || give_up "$1 is not valid shell" ;;
    esac
    think
}

id=${PREMATH_ISSUE_ID:-}
[ -n "$id" ] || give_up 'PREMATH_ISSUE_ID is not set'
issue=${PREMATH_ISSUE_FILE:-}
prompt=${PREMATH_PROMPT_FILE:-}
[ -r "$issue" ] || give_up 'PREMATH_ISSUE_FILE cannot be read'
[ -r "$prompt" ] || give_up 'PREMATH_PROMPT_FILE cannot be read'
grep -qF "\"$id\"" "$issue" || give_up 'the issue file is about another issue'

case $id in
*[!A-Za-z0-9-]*) give_up 'no edit known for this id' ;;
esac
[ -f "tools/edits/$id.sh" ] || give_up "no edit known for $id"

say "issue $id: ${PREMATH_ISSUE_TITLE:-}"
# A second attempt is told in its prompt what went wrong with the first.
feedback=$(awk '
    /^#+ What failed last time/ { on = 1; next }
    /^##? [A-Z]/ { on = 0 }
    on' "$prompt")
if [ -n "$feedback" ]; then
    say 'reading what failed last time:'
    printf '%s\n' "$feedback" | sed -n '/expected/s/^/agent: | /p'
else
    say 'first attempt'
fi
think

# shellcheck source=/dev/null
. "tools/edits/$id.sh"
# From now on the project's tests hold this change too.
printf '%s (%s)\n' "${PREMATH_ISSUE_TITLE:-$id}" "$id" | edit "changes/$id.md"
say 'done'
