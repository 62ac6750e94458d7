# What must hold before and after every issue.
gives 'count counts words' '6\n' 'to be or\nnot to be\n' count
gives 'count --lines counts lines' '2\n' 'one\ntwo\n' count --lines
gives 'freq puts the most frequent word first' '2 be\n2 to\n1 not\n1 or\n' 'to be or not to be\n' freq
gives 'freq --topic leaves out stop words' '1 cat\n1 dog\n' 'the cat and the dog\n' freq --topic
gives 'trim removes spaces at the end' 'one\n  two\n' 'one  \n  two \n' trim
gives 'wrap breaks between words' 'to be\nor not\nto be\n' 'to be or not to be\n' wrap 6
gives 'wrap keeps empty lines' 'one\n\ntwo\n' 'one\n\ntwo\n' wrap
