# wk-03: Add the tool slug
gives 'a title becomes a slug' 'hello-world\n' 'Hello, World!\n' slug
gives 'no dash at either end' 'ready-set-go-2\n' '  -- Ready?  Set, GO 2 --\n' slug
gives 'each line on its own' 'one\ntwo-b\n' 'One\nTwo B\n' slug
