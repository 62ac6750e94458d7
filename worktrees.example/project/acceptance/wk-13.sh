# wk-13: Put the stop words in order
list=share/stopwords.txt
if sort -c -u "$list" 2>/dev/null; then
    passed 'the list is sorted and has each word once'
else
    failed 'the list is sorted and has each word once' 'it is not'
fi
same 'all words are in lower case' '0 others' "$(awk '/[^a-z]/ { n++ } END { print n + 0 }' "$list") others"
same 'no word is lost' '17 words' "$(awk 'END { print NR }' "$list") words"
