# wk-07: Add the tool number
gives 'lines are numbered from 1' '   1  one\n   2  two\n' 'one\ntwo\n' number
gives 'blank lines stay and take no number' '   1  one\n\n   2  two\n' 'one\n\ntwo\n' number
gives 'a last line without a newline is numbered' '   1  one\n' 'one' number
