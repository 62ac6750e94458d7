# wk-04: trim leaves tabs at the end of a line
gives 'tabs at the end go' 'one\ntwo\n' 'one\t\ntwo \t \n' trim
gives 'a carriage return at the end goes' 'one\ntwo\n' 'one\r\ntwo\r\n' trim
gives 'white space inside a line stays' '\tone  two\n' '\tone  two\n' trim
