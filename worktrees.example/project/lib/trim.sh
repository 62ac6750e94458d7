# trim: removes white space from the end of every line.
wk_trim() {
    sed 's/ *$//'
}
