say 'wc -l counts newlines; a line counts without one too, for other tools as well'
edit lib/part/lines.sh <<'EOF'
# What a line is: the last one counts, whether or not a newline ends it.
# wk_lines: prints every line of a text, each with a newline at its end.
wk_lines() {
    awk '{ print }'
}
EOF
edit lib/count.sh <<'EOF'
# count [--lines]: prints the number of words, or of lines.
wk_use part/lines

wk_count() {
    case ${1:-} in
    '') wc -w | tr -d ' ' ;;
    --lines) wk_lines | wc -l | tr -d ' ' ;;
    *) wk_usage 'count [--lines]' ;;
    esac
}
EOF
