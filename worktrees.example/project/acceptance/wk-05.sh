# wk-05: Add the tool words
gives 'one word on each line' 'to\nbe\nor\nnot\n' 'To be, or: not?\n' words
words=$(printf "don't panic now\n" | sh bin/wordkit words 2>/dev/null | wc -l | tr -d ' ')
same 'an apostrophe inside a word does not end it' '3 words' "$words words"
gives 'quotes around a word are not part of it' 'hello\nyou\n' "'hello' you\n" words
