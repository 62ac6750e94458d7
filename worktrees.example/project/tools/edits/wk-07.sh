edit lib/number.sh <<'EOF'
# number: writes its number before every line that is not blank.
wk_use part/lines

wk_number() {
    wk_lines | awk 'NF { printf "%4d  %s\n", ++n, $0; next } { print "" }'
}
EOF
