//! The commands of the guide, as they are printed there.

use super::notified;
use premath_tests::{PATIENCE, Scratch, issue, receiver, skipped, tls_receiver, workspace};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// A title that a shell, a mail program or Slack could take for more than a text.
const TITLE: &str =
    "-s \"x\" '$(touch ~/ran)`touch ~/ran`'\n~!touch ~/ran <!channel> & @/etc/passwd";

/// The end of the text of a notification about it.
const TEXT: &str = "a blocked: check_failed: -s \"x\" '$(touch ~/ran)`touch ~/ran`'\\n~!touch ~/ran <!channel> & @/etc/passwd";

/// Returns the first block of a language below a heading or a line of the guide.
pub(super) fn block(after: &str, language: &str) -> String {
    let guide = workspace().join("docs/guides/notifications.md");
    let guide = fs::read_to_string(guide).unwrap();
    let (_, rest) = guide.split_once(&format!("\n{after}")).expect("the place");
    let (_, block) = rest
        .split_once(&format!("```{language}\n"))
        .expect("a block");
    block.split_once("```\n").expect("its end").0.to_owned()
}

/// A repository with the settings of a template, and an issue of a hostile title.
fn with_template(after: &str) -> Scratch {
    let scratch = notified(&[], &block(after, "toml"));
    let mut hostile = issue("a");
    hostile["title"] = json!(TITLE);
    scratch.write_issues(format!("{hostile}\n").as_bytes());
    scratch
}

/// Runs a batch that blocks the issue; its notifications must not fail.
fn blocks(scratch: &Scratch) {
    let bin = scratch.home().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let batch = scratch.batch("true", "false");
    let batch = batch.env("PATH", format!("{}:{path}", bin.display()));
    let ended = batch.end().exits(1);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!said.contains("notification"), "{said}");
    assert!(!scratch.home().join("ran").exists());
    scratch.no_process_left();
}

fn has(program: &str) -> bool {
    let found = premath_tests::command(std::path::Path::new(program))
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let found = found.is_ok();
    if !found {
        skipped(
            "a template of a notification",
            &format!("{program} is not installed"),
        );
    }
    found
}

#[test]
fn ntfy_gets_the_text_as_its_body() {
    if !has("curl") {
        return;
    }
    let receiver = tls_receiver("ntfy.sh");
    let scratch = with_template("ntfy:\n");
    let authority = scratch.home().join("authority.pem");
    fs::write(&authority, &receiver.authority).unwrap();
    // The address of the page, which this machine answers.
    let rules = format!(
        "connect-to = \"ntfy.sh:443:{}\"\ncacert = \"{}\"\nnoproxy = \"*\"\n",
        receiver.address,
        authority.display()
    );
    fs::write(scratch.home().join(".curlrc"), rules).unwrap();
    blocks(&scratch);
    let posted = receiver.posted.recv_timeout(PATIENCE).unwrap();
    assert!(posted.0.starts_with("post /your-topic "), "{}", posted.0);
    assert_eq!(String::from_utf8(posted.1).unwrap(), TEXT);
    let done = String::from_utf8(receiver.posted.recv_timeout(PATIENCE).unwrap().1).unwrap();
    assert!(
        done.ends_with("1 attempted issues closed, exit code 1"),
        "{done}"
    );
}

#[test]
fn slack_gets_the_text_escaped_in_json() {
    if !has("curl") || !has("jq") {
        return;
    }
    let (url, posted) = receiver(&["200 OK"]);
    let scratch = with_template("A text that begins");
    let file = scratch.home().join(".config/premath/slack-url");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("{url}/services/T0/B0/x\n")).unwrap();
    blocks(&scratch);
    let (head, body) = posted.recv_timeout(PATIENCE).unwrap();
    assert!(head.starts_with("post /services/t0/b0/x "), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let document: Value = serde_json::from_slice(&body).unwrap();
    let text = TEXT.replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    assert_eq!(document, json!({"text": text}));
}

#[test]
fn mail_gets_the_text_as_its_subject_and_the_document_as_its_body() {
    let scratch = with_template("Mail:\n");
    let bin = scratch.home().join("bin");
    fs::create_dir(&bin).unwrap();
    let keeps = "#!/bin/sh\nn=$(ls \"$HOME\" | grep -c arguments)\n\
                 printf '%s\\0' \"$@\" > \"$HOME/arguments-$n\"\ncat > \"$HOME/body-$n\"\n";
    fs::write(bin.join("mail"), keeps).unwrap();
    fs::set_permissions(bin.join("mail"), fs::Permissions::from_mode(0o755)).unwrap();
    blocks(&scratch);
    let arguments = fs::read_to_string(scratch.home().join("arguments-0")).unwrap();
    let arguments: Vec<&str> = arguments.split_terminator('\0').collect();
    assert_eq!(arguments, ["-s", TEXT, "you@example.org"]);
    let body = fs::read(scratch.home().join("body-0")).unwrap();
    let document: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(document["event"], "blocked");
    assert_eq!(document["text"], TEXT);
    assert!(scratch.home().join("arguments-1").exists());
}
