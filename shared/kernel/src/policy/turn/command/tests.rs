use super::*;
use proptest::prelude::*;

fn shown_all(commands: &[ShellCommand]) -> Vec<String> {
    let show = |command: &ShellCommand| {
        let words = command.words.iter().map(|word| match word.is_dynamic {
            true => format!("<{}>", word.text),
            false => word.text.clone(),
        });
        let written = command.written.iter().map(|word| format!(">{}", word.text));
        let input = command.input.iter().map(|word| format!("<{:?}", word.text));
        words
            .chain(written)
            .chain(input)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut found: Vec<String> = commands.iter().map(show).collect();
    found.sort();
    found
}

fn shown(text: &str) -> Option<Vec<String>> {
    Some(shown_all(&commands_of(text)?))
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
        (
            "cat <<E\n$(git push)\nE\nls",
            &["cat <\"$(git push)\\n\"", "git push", "ls"],
        ),
        (
            "cat <<'E'\n$(git push)\nE\nls",
            &["cat <\"$(git push)\\n\"", "ls"],
        ),
        ("cat <<-E\n\ttext\n\tE\nls", &["cat <\"text\\n\"", "ls"]),
        ("cat <<< \"git push\"", &["cat <\"git push\""]),
        (
            "a <<A <<B | b <<C\n1\nA\n2\nB\n3\nC",
            &["a <\"1\\n\" <\"2\\n\"", "b <\"3\\n\""],
        ),
        (
            "git commit -m \"$(cat <<'E'\nIt's (done)\nE\n)\"",
            &[
                "cat <\"It's (done)\\n\"",
                "git commit -m <$(cat <<'E'\nIt's (done)\nE\n)>",
            ],
        ),
        ("diff <(git push) b", &["diff <> b", "git push"]),
        (
            "echo $(( $(date +%s) - \"$START\" ))",
            &["date +%s", "echo <$(( $(date +%s) - \"$START\" ))>"],
        ),
        ("echo $(((1 + 2) * 3))", &["echo <$(((1 + 2) * 3))>"]),
        (
            "bash -lc 'git push && ls'",
            &["bash -lc git push && ls", "git push", "ls"],
        ),
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
fn the_commands_that_a_command_runs_are_found() {
    for (text, expected) in [
        ("sudo -u x git push", &["git push"][..]),
        ("sudo -n git push", &["git push"]),
        ("timeout -s 9 5 git push", &["git push"]),
        (
            "timeout --signal=9 5 nice -n5 git push",
            &["git push", "nice -n5 git push"],
        ),
        ("env -u A B=1 git push", &["git push"]),
        ("env -S 'git push'", &["git push"]),
        ("xargs -0 -n 1 grep mount", &["grep mount"]),
        ("xargs -rn 1 -- grep mount", &["grep mount"]),
        ("command git push", &["git push"]),
        ("command -v sudo", &[]),
        ("uv run --with x twine upload a", &["x twine upload a"]),
        ("uv run twine upload a", &["twine upload a"]),
        ("npm exec -- git push", &["git push"]),
        ("npm run git push", &[]),
        ("npx -c 'git push'", &["git push"]),
        ("npx -p a git push", &["git push"]),
        ("/usr/lib/git-core/git-push a", &["git push a"]),
        ("bash -lc 'git push && ls'", &["git push", "ls"]),
        ("bash -euo pipefail -c 'git push'", &["git push"]),
        ("bash build.sh -c x", &[]),
        ("bash <<'E'\ngit push\nE", &["git push"]),
        ("bash -s <<< 'git push'", &["git push"]),
        ("bash a.sh <<< 'git push'", &[]),
        (
            "env bash <<< 'git push'",
            &["bash <\"git push\"", "git push"],
        ),
        ("bash -c \"$X\"", &["<$X>", "<$X>"]),
        (
            "bash -c \"cd $X && git push\"",
            &["<cd $X && git push>", "cd <$X>", "git push"],
        ),
        ("eval git push", &["git push"]),
        ("watch -n 5 'git push'", &["5 git push", "git push"]),
        ("find . -exec rm {} ';'", &["rm {} ;"]),
    ] {
        // The first is the command itself.
        let found = commands_of(text).unwrap_or_else(|| panic!("{text}: not understood"));
        assert_eq!(shown_all(&found[1..]), expected, "{text}");
    }
}

fn is_subcommand(text: &str, names: &[&str], is_sure: bool) -> bool {
    let commands = commands_of(text).unwrap();
    commands[0].is_subcommand(names, is_sure, |name, word| name == word)
}

#[test]
fn a_subcommand_is_the_first_operand() {
    for (text, may_be, is_sure) in [
        ("git push", true, true),
        ("git -C a --no-pager -c x=y push b", true, true),
        ("git --git-dir a push", true, true),
        ("git stash push", false, false),
        ("git commit -m push", false, false),
        ("git grep push", false, false),
        ("git --no-pager grep push", false, false),
        ("git $X push", true, false),
        ("git", false, false),
        ("pnpm --filter a push", true, false),
        ("pnpm -r push", true, false),
        ("pnpm --no-color push", true, true),
        ("pnpm --filter=a test push", false, false),
        ("cargo +nightly push", true, true),
    ] {
        assert_eq!(is_subcommand(text, &["push"], false), may_be, "{text}");
        assert_eq!(is_subcommand(text, &["push"], true), is_sure, "{text}");
    }
    for (text, expected) in [
        ("gh -R a release create", true),
        ("gh release create", true),
        ("gh release list create", false),
        ("gh create release", false),
    ] {
        let found = is_subcommand(text, &["release", "create"], false);
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
        "echo $((git push) )",
        "((git push); (ls))",
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
        "bash -c \"$(",
        "bash <<A $(",
        "\"$((",
        "env -S ",
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
