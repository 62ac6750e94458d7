say 'wc -l counts newlines; lines are what awk counts'
edit lib/count.sh <<'EOF'
# count [--lines]: prints the number of words, or of lines.
wk_count() {
    case ${1:-} in
    '') wc -w | tr -d ' ' ;;
    --lines) awk 'END { print NR }' ;;
    *) wk_usage 'count [--lines]' ;;
    esac
}
EOF
