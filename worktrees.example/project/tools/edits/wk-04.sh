say 'only spaces are removed so far; tabs and carriage returns have to go too'
edit lib/trim.sh <<'EOF'
# trim: removes white space from the end of every line.
wk_trim() {
    sed 's/[[:space:]]*$//'
}
EOF
