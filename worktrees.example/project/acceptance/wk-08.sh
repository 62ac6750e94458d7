# wk-08: Add the tool longest
gives 'the longest word' 'harness\n' 'the harness is up\n' longest
gives 'the first of two equally long words' 'seven\n' 'one seven eight\n' longest
gives 'a word is what the tool words prints' "don't\n" "Don't 'you' go\n" longest
gives 'the N longest, longest first' 'harness\nworks\n' 'it works the harness\n' longest 2
