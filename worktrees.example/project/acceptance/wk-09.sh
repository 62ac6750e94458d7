# wk-09: Add the tool squeeze
gives 'several blank lines become one' 'a\n\nb\n' 'a\n\n\n \nb\n' squeeze
gives 'what trim removes is blank' 'a\n\nb\n' 'a\n\r\n\t\nb\n' squeeze
gives 'none is left at the start or the end' 'a\nb\n' '\n\na\nb\n\n\n' squeeze
