# wk-10: Add the tool report
gives 'one line says it all' 'lines=2 words=5 longest=evening\n' 'good evening\nsaid the fox\n' report
gives 'a blank line is not counted' 'lines=2 words=3 longest=three\n' 'one\n\ntwo three\n' report
gives 'words are counted as words prints them' "lines=1 words=2 longest=don't\n" "'Don't!' - no\n" report
gives 'an empty text has a report too' 'lines=0 words=0 longest=-\n' '' report
