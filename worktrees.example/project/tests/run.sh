#!/bin/sh
# Runs all tests: the baseline, and the acceptance test of every change that has a
# note in changes/. The change of the issue that PREMATH_ISSUE_ID names must be
# among them. Results go to stdout, one line each. Each failure is also printed on
# stderr, after the failure class `check_failed`. Exits 1 if a test failed. Changes
# nothing in the tree.
set -eu
LC_ALL=C
export LC_ALL
cd -- "$(dirname -- "$0")/.."

. tests/check.sh

# accept ID: runs the acceptance test of an issue.
accept() {
    suite="acceptance $1"
    if [ -f "acceptance/$1.sh" ]; then
        # shellcheck source=/dev/null
        . "acceptance/$1.sh"
    else
        failed 'the issue has an acceptance test' 'there is none'
    fi
}

suite=baseline
. tests/baseline.sh

for note in changes/*.md; do
    [ -f "$note" ] || continue
    id=${note#changes/}
    accept "${id%.md}"
done

id=${PREMATH_ISSUE_ID:-}
if [ -n "$id" ] && [ ! -f "changes/$id.md" ]; then
    suite="acceptance $id"
    failed 'the change has a note' "there is no changes/$id.md"
fi

finish
