# count [--lines]: prints the number of words, or of lines.
wk_count() {
    case ${1:-} in
    '') wc -w | tr -d ' ' ;;
    --lines) wc -l | tr -d ' ' ;;
    *) wk_usage 'count [--lines]' ;;
    esac
}
