//! The completions load in the shells that they are for, and complete a command
//! and a flag.

use premath_tests::{command, skipped, workspace};
use std::process::{Output, Stdio};

/// What is typed, and what it becomes.
const CASES: [(&str, &str, &str); 4] = [
    ("premath", "esc", "escalate"),
    ("premath", "escalate --cl", "--class"),
    ("harness-worker", "ga", "gate"),
    ("harness-coordinator", "exa", "example"),
];

/// Runs a shell; says that it was skipped where the shell is not there.
fn run(shell: &str, args: &[&str]) -> Option<String> {
    let mut run = command(shell);
    run.args(args).stdin(Stdio::null()).current_dir(workspace());
    let Ok(Output {
        status,
        stdout,
        stderr,
    }) = run.output()
    else {
        skipped(
            &format!("the completions of {shell}"),
            "it is not installed",
        );
        return None;
    };
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success() && errors.is_empty(), "{shell}: {errors}");
    Some(String::from_utf8(stdout).unwrap())
}

#[test]
fn bash_completes_commands_and_flags() {
    for (program, typed, completed) in CASES {
        let words: Vec<&str> = typed.split(' ').collect();
        let script = format!(
            "source docs/completions/bash/{program} && COMP_WORDS=({program} {typed}) && \
             COMP_CWORD={} && _{} {program} {} && echo \"${{COMPREPLY[@]}}\"",
            words.len(),
            program.replace('-', "__"),
            words.last().unwrap(),
        );
        let Some(answer) = run("bash", &["--norc", "-c", &script]) else {
            return;
        };
        assert_eq!(answer.trim_end(), completed, "{program} {typed}");
    }
}

#[test]
fn fish_completes_commands_and_flags() {
    for (program, typed, completed) in CASES {
        let script =
            format!("source docs/completions/fish/{program}.fish; complete -C '{program} {typed}'");
        let Some(answer) = run("fish", &["--no-config", "-c", &script]) else {
            return;
        };
        let first = answer.split(['\t', '\n']).next();
        assert_eq!(first, Some(completed), "{program} {typed}");
    }
}

/// Presses the tabulator in a zsh with a terminal, and prints each line as it
/// is then.
const ZSH: &str = r#"
zmodload zsh/zpty || exit 2
zpty shell zsh -f -i
printed() { zpty -r shell REPLY "*$1*" && print -r -- "${${REPLY##*<<}%%>>*}" }
zpty -w shell 'unsetopt zle_bracketed_paste; PS1=""'
zpty -w shell 'fpath=(docs/completions/zsh $fpath); autoload -Uz compinit; compinit -u -D'
zpty -w shell 'show() { print -r -- "<<$BUFFER>>"; BUFFER="" }; zle -N show; bindkey "^X" show'
zpty -w shell 'bindkey "^I" complete-word; print "<<""ready>>"'
printed '<<ready>>' >/dev/null
for line in "$@"; do
  zpty -w -n shell "$line"$'\t\x18'
  printed '<<*>>'
done
"#;

#[test]
fn zsh_completes_commands_and_flags() {
    let typed = CASES.map(|(program, typed, _)| format!("{program} {typed}"));
    let mut args = vec!["-f", "-c", ZSH, "zsh"];
    args.extend(typed.iter().map(String::as_str));
    let Some(answer) = run("zsh", &args) else {
        return;
    };
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines.len(), CASES.len(), "{answer}");
    for ((line, typed), (.., completed)) in lines.into_iter().zip(typed).zip(CASES) {
        let last = line.trim_end_matches([' ', '=']).rsplit(' ').next();
        assert_eq!(last, Some(completed), "{typed}: {line}");
    }
}
