# wk-06: Add the tool dedent
gives 'the common indent goes' 'a\n  b\nc\n' '    a\n      b\n    c\n' dedent
gives 'blank lines do not count and become empty' 'a\n\nb\n' '  a\n \n  b\n' dedent
gives 'what trim removes is blank' 'a\n\nb\n' '  a\n\t\r\n  b\n' dedent
gives 'a text without indent stays' 'a\n  b\n' 'a\n  b\n' dedent
