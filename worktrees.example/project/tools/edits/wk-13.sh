say 'sorting the stop words and taking out what is there twice'
tidy=$(tr '[:upper:]' '[:lower:]' <share/stopwords.txt | sort -u)
printf '%s\n' "$tidy" | edit share/stopwords.txt
