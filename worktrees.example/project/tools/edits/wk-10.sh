say 'the lines are those that number numbers, the words those that words prints'
edit lib/report.sh <<'EOF'
# report: sums up a text in one line.
wk_use number
wk_use words
wk_use longest

wk_report() {
    text=$(cat && printf .)
    text=${text%.}
    lines=$(printf '%s' "$text" | wk_number | awk 'NF { n++ } END { print n + 0 }')
    words=$(printf '%s' "$text" | wk_words | awk 'END { print NR }')
    longest=$(printf '%s' "$text" | wk_longest)
    printf 'lines=%d words=%d longest=%s\n' "$lines" "$words" "${longest:--}"
}
EOF
