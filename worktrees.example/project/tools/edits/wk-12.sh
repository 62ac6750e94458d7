edit lib/preview.sh <<'EOF'
# preview: prints the first line as a headline, and two lines of what follows.
wk_preview() {
    awk '
        NR == 1 {
            print
            gsub(/./, "=")
            print
        }
        NR == 2 { print "" }
        NR == 2 || NR == 3 { print }'
}
EOF
