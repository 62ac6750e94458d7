say 'only spaces are removed so far; white space must be defined in one place'
edit lib/part/space.sh <<'EOF'
# What white space within a line is: a bracket expression, as awk -v reads it.
# shellcheck shell=sh disable=SC2034 # WK_SPACE: read by the tools
WK_SPACE='[ \t\r]'
EOF
edit lib/trim.sh <<'EOF'
# trim: removes white space from the end of every line.
wk_use part/space

wk_trim() {
    awk -v space="$WK_SPACE" '{ sub(space "*$", ""); print }'
}
EOF
