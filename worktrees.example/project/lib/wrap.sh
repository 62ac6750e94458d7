# wrap [WIDTH]: breaks lines between words so that none is longer than WIDTH (72).
wk_wrap() {
    case ${1:-72} in
    *[!0-9]* | 0) wk_usage 'wrap [WIDTH]' ;;
    esac
    awk -v width="${1:-72}" '
        {
            line = ""
            for (i = 1; i <= NF; i++) {
                if (line == "") line = $i
                else if (length(line) + 1 + length($i) <= width) line = line " " $i
                else { print line; line = $i }
            }
            print line
        }'
}
