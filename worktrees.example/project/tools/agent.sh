#!/bin/sh
# The scripted agent of this example; the work command of the batch. It replaces a
# coding agent: it reads the issue and the prompt that the harness wrote, edits
# files in the worktree it was started in, and ends. Its edits for an issue are in
# tools/edits/<id>.sh. The verification decides whether they are right. It reports
# its actions as Codex does (`codex exec --json`): one line of JSON per event. The
# harness makes evidence of them.
set -eu
LC_ALL=C
export LC_ALL

# text WORDS: words as a JSON string.
text() {
    printf '"%s"' "$(printf '%s' "$1" | tr '\t' ' ' | sed 's/[\\"]/\\&/g')"
}

# An edit may be the end of a pipe, in a subshell, so the count is in a file.
count=$(mktemp)
trap 'rm -f "$count"' EXIT

# next: begins another item.
next() {
    echo >>"$count"
    items=$(($(wc -l <"$count")))
}

# item TYPE STATUS FIELDS: an event of the latest item.
item() {
    printf '{"type":"item.%s","item":{"id":"item_%d","type":"%s",%s}}\n' "$2" "$items" "$1" "$3"
}

# give_up WHY: ends the work with an error of its own class.
give_up() {
    printf '{"type":"turn.failed","error":{"message":%s}}\n' "$(text "$1")"
    printf 'work_failed: %s\n' "$1" >&2
    exit 1
}

# say WORDS: a message of the agent.
say() {
    next
    item agent_message completed "\"text\":$(text "$1")"
}

printf '{"type":"thread.started","thread_id":%s}\n{"type":"turn.started"}\n' "$(text "${PREMATH_STEP_ID:-}")"

# think: a short pause; none where sleep knows whole seconds only.
think() {
    sleep 0.05 2>/dev/null || :
}

# edit FILE: puts its standard input in FILE; a tool call of the agent.
edit() {
    mkdir -p "$(dirname -- "$1")"
    if [ -f "$1" ]; then kind=update; else kind=add; fi
    next
    change="\"changes\":[{\"path\":$(text "$1"),\"kind\":\"$kind\"}]"
    item file_change started "$change,\"status\":\"in_progress\""
    cat >"$1.tmp"
    mv -f "$1.tmp" "$1"
    item file_change completed "$change,\"status\":\"completed\""
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
# The prompt of a second attempt has the failure of the first.
feedback=$(awk '
    /^#+ What failed last time/ { on = 1; next }
    /^##? [A-Z]/ { on = 0 }
    on' "$prompt")
if [ -n "$feedback" ]; then
    say 'reading what failed last time:'
    say "$(printf '%s\n' "$feedback" | grep expected | head -n 1)"
else
    say 'first attempt'
fi
think

# shellcheck source=/dev/null
. "tools/edits/$id.sh"
# From now on the project's tests hold this change too.
printf '%s (%s)\n' "${PREMATH_ISSUE_TITLE:-$id}" "$id" | edit "changes/$id.md"
say 'done'
printf '{"type":"turn.completed","usage":{}}\n'
