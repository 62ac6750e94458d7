edit lib/longest.sh <<'EOF'
# longest [N]: prints the N longest words (1), longest first.
wk_use words

wk_longest() {
    case ${1:-1} in
    *[!0-9]*) wk_usage 'longest [N]' ;;
    esac
    wk_words |
        awk '!seen[$0]++ { printf "%d %d %s\n", length($0), NR, $0 }' |
        sort -k1,1nr -k2,2n |
        awk -v n="${1:-1}" 'NR <= n { print $3 }'
}
EOF
