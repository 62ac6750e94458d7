//! Line ends of files that a step wrote, compared with what git itself stores.

use super::lane::Lane;
use super::*;
use std::process::Command;

/// Contents, by names that the attributes below know.
const CONTENTS: [&[u8]; 10] = [
    b"a\r\nb\r\n",
    b"a\nb\n",
    b"a\r\nb\n",
    b"a\rb\r\n",
    b"a\r\n\x1a",
    b"\0a\r\n",
    b"sig\r\n\x01\x02\x03\x04\xff\xfe c\rd\r\n",
    b"\x7f\r\n",
    b"\xc3\xa4\x1b[1m\t\x08\x0c\r\n",
    b"\r\n",
];
const KINDS: [&str; 9] = [
    "auto", "text", "kept", "lf", "crlf", "autocrlf", "old", "input", "none",
];
const ATTRIBUTES: &str = "*.auto text=auto\n*.text text\n*.kept -text\n*.lf eol=lf\n\
                          *.crlf eol=crlf\n*.autocrlf text=auto eol=crlf\n*.old crlf\n\
                          *.input text=input\n";

fn names() -> impl Iterator<Item = (String, &'static [u8])> {
    KINDS.iter().flat_map(|kind| {
        let contents = CONTENTS.iter().enumerate();
        contents.map(move |(number, content)| (format!("{number}.{kind}"), *content))
    })
}

/// Runs git in the main worktree; its own settings alone count.
fn git(lane: &Lane, arguments: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "git is what is compared with")]
    let mut git = Command::new("git");
    git.args(["-c", "core.safecrlf=false"]).args(arguments);
    git.current_dir(lane.main.workdir().unwrap());
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        git.env(name, "/dev/null");
    }
    let ended = git.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{arguments:?}: {said}");
    String::from_utf8(ended.stdout).unwrap()
}

/// Each content over each other, with and without a setting for all files.
#[test]
fn a_file_is_stored_as_git_stores_it() {
    for setting in ["false", "input", "true"] {
        let mut lane = Lane::new();
        let mut config = lane.main.config().unwrap();
        let main = lane.main.workdir().unwrap().to_path_buf();
        // What was there before has the line ends that it was written with.
        for (name, _) in names() {
            fs::write(main.join(name), b"old\r\n").unwrap();
        }
        git(&lane, &["-c", "core.autocrlf=false", "add", "."]);
        git(
            &lane,
            &[
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@t",
                "commit",
                "-qm",
                "old",
            ],
        );
        fs::write(main.join(".gitattributes"), ATTRIBUTES).unwrap();
        config.set_str("core.autocrlf", setting).unwrap();
        git(&lane, &["add", ".gitattributes"]);
        lane.base.commit = git(&lane, &["rev-parse", "HEAD"]).trim().to_owned();
        lane.tree.before_command();
        lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
        for (name, content) in names() {
            for name in [name.clone(), format!("new-{name}")] {
                fs::write(main.join(&name), content).unwrap();
                fs::write(lane.at(&name), content).unwrap();
            }
        }
        git(&lane, &["add", "."]);
        let tree = lane.tree.keep_content(&lane.base.commit).unwrap();
        let listed = git(&lane, &["ls-files", "-s"]);
        let mut compared = 0;
        for line in listed.lines() {
            let (entry, name) = line.split_once('\t').unwrap();
            let Some((number, kind)) = name.trim_start_matches("new-").split_once('.') else {
                continue;
            };
            if !KINDS.contains(&kind) {
                continue;
            }
            let ours = git(&lane, &["rev-parse", &format!("{tree}:{name}")]);
            let content = CONTENTS[number.parse::<usize>().unwrap()];
            let theirs = entry.split(' ').nth(1).unwrap();
            let shown = String::from_utf8_lossy(content);
            assert_eq!(
                ours.trim(),
                theirs,
                "{name} of {shown:?}, core.autocrlf {setting}"
            );
            compared += 1;
        }
        assert_eq!(compared, 2 * KINDS.len() * CONTENTS.len());
    }
}
