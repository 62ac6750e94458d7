# wk-02: freq takes The and the for two words
gives 'upper and lower case are one word' '3 the\n1 dog\n' 'The the THE dog\n' freq
gives 'stop words are left out in any case' '1 cat\n1 dog\n' 'The Cat and the dog\n' freq --topic
