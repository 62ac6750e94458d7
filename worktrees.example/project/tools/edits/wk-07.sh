edit lib/number.sh <<'EOF'
# number: writes its number before every line that is not blank.
wk_number() {
    awk '/[^ \t]/ { printf "%4d  %s\n", ++n, $0; next } { print "" }'
}
EOF
