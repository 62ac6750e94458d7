edit lib/dedent.sh <<'EOF'
# dedent: removes the spaces that all lines begin with.
wk_use part/space

wk_dedent() {
    awk -v space="$WK_SPACE" '
        BEGIN { blank = "^" space "*$" }
        { line[NR] = $0 }
        $0 !~ blank {
            match($0, /^ */)
            if (!seen || RLENGTH < indent) indent = RLENGTH
            seen = 1
        }
        END {
            for (i = 1; i <= NR; i++) {
                if (line[i] !~ blank) print substr(line[i], indent + 1)
                else print ""
            }
        }'
}
EOF
