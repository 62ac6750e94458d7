# shellcheck shell=sh disable=SC2154 # feedback: set by tools/agent.sh
case $feedback in
*apostrophe*)
    say 'letters and apostrophes make a word; quotes around it go'
    edit lib/words.sh <<'EOF'
# words: prints the words of a text in lower case, one on each line.
wk_words() {
    tr '[:upper:]' '[:lower:]' |
        tr -cs "[:alpha:]'" '\n' |
        sed -e "s/^'*//" -e "s/'*\$//" -e '/^$/d'
}
EOF
    ;;
*)
    say 'a word is a run of letters'
    edit lib/words.sh <<'EOF'
# words: prints the words of a text in lower case, one on each line.
wk_words() {
    tr '[:upper:]' '[:lower:]' | tr -cs '[:alpha:]' '\n' | sed '/^$/d'
}
EOF
    ;;
esac
