# wk-10: Add the tool report
gives 'one line says it all' 'lines=2 words=5 longest=evening\n' 'good evening\nsaid the fox\n' report
gives 'an empty text has a report too' 'lines=0 words=0 longest=-\n' '' report
