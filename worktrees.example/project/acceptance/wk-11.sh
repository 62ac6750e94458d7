# wk-11: Add the tool excerpt
# The two checks contradict each other for any text that is longer than 20 characters.
text='the night was long and the harness kept going'
got=$(printf '%s\n' "$text" | sh bin/wordkit excerpt 20 2>/dev/null) || got=''
if [ -z "$got" ]; then
    failed 'excerpt prints something' 'it printed nothing'
elif [ "${#got}" -gt 20 ]; then
    failed 'the excerpt fits' "expected at most 20 characters, got ${#got}"
else
    passed 'the excerpt fits'
fi
for word in $text; do
    case " $got " in
    *" $word "*) ;;
    *)
        failed 'no word is lost' "expected every word of the text, \"$word\" is missing"
        break
        ;;
    esac
done
