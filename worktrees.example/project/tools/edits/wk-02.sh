say 'the words have to be in lower case before they are compared'
edit lib/freq.sh <<'EOF'
# freq [--topic]: prints each word and how often it occurs, most frequent first.
wk_freq() {
    case ${1:-} in
    '') wk_freq_words | wk_freq_tally ;;
    --topic) wk_freq_words | grep -vxFf "$WK_HOME/share/stopwords.txt" | wk_freq_tally ;;
    *) wk_usage 'freq [--topic]' ;;
    esac
}

wk_freq_words() {
    tr '[:upper:]' '[:lower:]' | tr -cs '[:alpha:]' '\n' | sed '/^$/d'
}

wk_freq_tally() {
    sort | uniq -c | awk '{ print $1, $2 }' | sort -k1,1nr -k2,2
}
EOF
