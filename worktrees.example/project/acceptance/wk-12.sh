# wk-12: Add the tool preview
gives 'a headline, then two lines' 'News\n====\n\none\ntwo\n' 'News\none\ntwo\nthree\n' preview
gives 'a headline alone' 'News\n====\n' 'News\n' preview
