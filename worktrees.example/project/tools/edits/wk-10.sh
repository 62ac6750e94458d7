edit lib/report.sh <<'EOF'
# report: sums up a text in one line.
wk_report() {
    awk '
        {
            for (i = 1; i <= NF; i++) {
                words++
                if (length($i) > length(longest)) longest = $i
            }
        }
        END {
            if (longest == "") longest = "-"
            printf "lines=%d words=%d longest=%s\n", NR, words, longest
        }'
}
EOF
