#!/bin/sh
# Runs the tests of what is there, and the acceptance test of the issue that
# PREMATH_ISSUE_ID names. Results go to stdout, one line each; each failure is
# told once more on stderr, behind the failure class `check_failed`. Exit 1 when
# anything failed. Nothing in the tree is changed.
set -eu
LC_ALL=C
export LC_ALL
cd -- "$(dirname -- "$0")/.."

. tests/check.sh

suite=baseline
. tests/baseline.sh

id=${PREMATH_ISSUE_ID:-}
if [ -n "$id" ]; then
    suite="acceptance $id"
    case $id in
    *[!A-Za-z0-9-]*) missing=yes ;;
    *) if [ -f "acceptance/$id.sh" ]; then missing=no; else missing=yes; fi ;;
    esac
    if [ "$missing" = yes ]; then
        failed 'the issue has an acceptance test' 'there is none'
    else
        # shellcheck source=/dev/null
        . "acceptance/$id.sh"
    fi
fi

finish
