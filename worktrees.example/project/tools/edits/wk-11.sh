# shellcheck shell=sh disable=SC2154 # feedback: set by tools/agent.sh
case $feedback in
*'no word is lost'*)
    say 'a word was lost; keeping all of them, with single spaces'
    edit lib/excerpt.sh <<'EOF'
# excerpt WIDTH: prints a text on one line.
wk_excerpt() {
    case ${1:-} in
    '' | *[!0-9]*) wk_usage 'excerpt WIDTH' ;;
    esac
    awk '
        {
            for (i = 1; i <= NF; i++) {
                printf "%s%s", gap, $i
                gap = " "
            }
        }
        END { print "" }'
}
EOF
    say 'note: this is longer than the issue allows; I see no way to have both'
    ;;
*)
    say 'cutting after the last word that fits'
    edit lib/excerpt.sh <<'EOF'
# excerpt WIDTH: prints as many words of a text as fit in WIDTH characters.
wk_excerpt() {
    case ${1:-} in
    '' | *[!0-9]*) wk_usage 'excerpt WIDTH' ;;
    esac
    awk -v width="$1" '
        {
            for (i = 1; i <= NF && !full; i++) {
                more = line (line == "" ? "" : " ") $i
                if (length(more) <= width) line = more
                else full = 1
            }
        }
        END { print line }'
}
EOF
    ;;
esac
