edit lib/slug.sh <<'EOF'
# slug: turns each line into a slug for an address.
wk_slug() {
    tr '[:upper:]' '[:lower:]' |
        sed -e 's/[^a-z0-9]\{1,\}/-/g' -e 's/^-//' -e 's/-$//'
}
EOF
