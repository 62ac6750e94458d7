edit lib/dedent.sh <<'EOF'
# dedent: removes the spaces that all lines begin with.
wk_dedent() {
    awk '
        { line[NR] = $0 }
        /[^ \t]/ {
            match($0, /^ */)
            if (!seen || RLENGTH < indent) indent = RLENGTH
            seen = 1
        }
        END {
            for (i = 1; i <= NR; i++) {
                if (line[i] ~ /[^ \t]/) print substr(line[i], indent + 1)
                else print ""
            }
        }'
}
EOF
