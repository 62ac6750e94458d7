# wk-01: count --lines misses a last line without a newline
gives 'a last line without a newline counts' '2\n' 'one\ntwo' count --lines
gives 'an empty text has no line' '0\n' '' count --lines
gives 'empty lines count' '3\n' 'one\n\nthree\n' count --lines
