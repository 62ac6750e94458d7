edit lib/squeeze.sh <<'EOF'
# squeeze: leaves one blank line where there were several, and none at the ends.
wk_use part/space

wk_squeeze() {
    awk -v space="$WK_SPACE" '
        $0 ~ ("^" space "*$") { gap = 1; next }
        {
            if (gap && printed) print ""
            print
            printed = 1
            gap = 0
        }'
}
EOF
