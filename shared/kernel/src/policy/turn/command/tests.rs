use super::*;
use proptest::prelude::*;

fn shown(text: &str) -> Option<Vec<String>> {
    let show = |command: ShellCommand| {
        let words = command.words.iter().map(|word| match word.is_dynamic {
            true => format!("<{}>", word.text),
            false => word.text.clone(),
        });
        let written = command.written.iter().map(|word| format!(">{}", word.text));
        words.chain(written).collect::<Vec<_>>().join(" ")
    };
    let mut found: Vec<String> = commands_of(text)?.into_iter().map(show).collect();
    found.sort();
    Some(found)
}

#[test]
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn every_command_of_a_text_is_found() {
    for (text, expected) in [
        ("git push", &["git push"][..]),
        (
            "cd a && git push origin; ls|wc",
            &["cd a", "git push origin", "ls", "wc"],
        ),
        ("A=1 B='x y' git  push", &["git push"]),
        ("git 'pu'\"sh\" a\\ b", &["git push a b"]),
        ("git \\\n push # a comment; rm", &["git push"]),
        ("echo \"$(git push)\"", &["echo <$(git push)>", "git push"]),
        ("echo `git push`", &["echo <`git push`>", "git push"]),
        ("x=$(git push)", &["git push"]),
        ("(git push)", &["git push"]),
        ("{ git push; }", &["git push"]),
        ("if a; then git push; else b; fi", &["a", "b", "git push"]),
        (
            "for x in a $(b); do git push \"$x\"; done",
            &["b", "git push <$x>"],
        ),
        ("while read -r x; do c; done < file", &["c", "read -r x"]),
        (
            "case $1 in (a|b) git push;; *) ls; esac",
            &["git push", "ls"],
        ),
        ("f() { git push; }; f", &["f", "git push"]),
        ("function f { git push; }", &["git push"]),
        ("[[ -f a && ( b || c ) ]] && git push", &["git push"]),
        ("(( a + (b) )) && git push", &["git push"]),
        (
            "echo $((1 + 2)) ${a:-$(git push)}",
            &["echo <$((1 + 2))> <${a:-$(git push)}>", "git push"],
        ),
        ("ls > out 2>&1 >> more", &["ls >out >more"]),
        ("ls 2> err &> all", &["ls >err >all"]),
        ("cat <<E\n$(git push)\nE\nls", &["cat", "git push", "ls"]),
        ("cat <<'E'\n$(git push)\nE\nls", &["cat", "ls"]),
        ("cat <<-E\n\ttext\n\tE\nls", &["cat", "ls"]),
        ("cat <<< \"git push\"", &["cat"]),
        ("diff <(git push) b", &["diff <> b", "git push"]),
        ("sudo git push", &["git push", "push", "sudo git push"]),
        (
            "timeout -s 9 5 git push",
            &[
                "5 git push",
                "9 5 git push",
                "git push",
                "push",
                "timeout -s 9 5 git push",
            ],
        ),
        (
            "bash -lc 'git push && ls'",
            &["bash -lc git push && ls", "git push", "ls"],
        ),
        ("bash -c \"$X\"", &["<$X>", "bash -c <$X>"]),
        ("eval git push", &["eval git push", "git push"]),
        ("find . -exec rm {} ;", &["find . -exec rm {}", "rm {}"]),
        ("$GIT push", &["<$GIT> push"]),
        ("git {push,pull}", &["git <{push,pull}>"]),
        ("echo $'a\\nb' $\"c\"", &["echo <a\\nb> c"]),
        ("a=(1 2) ls", &["ls"]),
        ("", &[]),
        ("# nothing", &[]),
    ] {
        let found = shown(text).unwrap_or_else(|| panic!("{text}: not understood"));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_text_that_is_not_understood_has_no_commands() {
    for text in [
        "git 'push",
        "echo \"a",
        "(git push",
        "git push)",
        "echo $(git push",
        "cat <<E\nnever ends",
        "a ;; b",
        "echo $(( $(git push) ))",
        "bash -c 'git (push'",
        "a\0b",
    ] {
        assert_eq!(commands_of(text), None, "{text}");
    }
}

#[test]
fn a_hostile_text_costs_no_more_than_its_length() {
    for part in [
        "(",
        "$(",
        "{ ",
        "if x; then ",
        "\"$(",
        "${",
        "`",
        "case x in (",
        "<(",
        "sudo ",
        "{",
        "((",
        "bash -c ",
        "eval ",
        "cat <<A ",
        "[[ ",
        "\\",
        "'",
        "a=(",
        "find -exec ",
    ] {
        for length in [1, 30, TEXT_MAX / part.len()] {
            // The answer does not matter: that there is one does.
            let _ = commands_of(&part.repeat(length));
        }
    }
    assert_eq!(commands_of(&"a".repeat(TEXT_MAX + 1)), None);
}

proptest! {
    #[test]
    fn any_text_has_an_answer(text in "[ \\n;&|()<>{}$`'\"\\\\a-d=#!0-9-]{0,200}") {
        let _ = commands_of(&text);
    }

    #[test]
    fn quoted_words_are_one_argument(word in "[^']{1,40}") {
        prop_assume!(!word.contains('\0'));
        let found = commands_of(&format!("echo '{word}'")).unwrap();
        prop_assert_eq!(&found[0].words[1].text, &word);
    }
}
