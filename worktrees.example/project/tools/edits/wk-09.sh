edit lib/squeeze.sh <<'EOF'
# squeeze: leaves one blank line where there were several, and none at the ends.
wk_squeeze() {
    awk '
        !/[^ \t]/ { gap = 1; next }
        {
            if (gap && printed) print ""
            print
            printed = 1
            gap = 0
        }'
}
EOF
