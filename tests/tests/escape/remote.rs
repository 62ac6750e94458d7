//! Attack 11: a remote that can be reached is pushed to by force. Attack 17: a
//! remote by a relative URL is pushed to by the harness.

use crate::ground::{Ground, TARGET};
use premath_tests::{PATIENCE, skipped, until};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

attacks! {
    a_remote_by_path_is_not_pushed_to,
    a_remote_by_network_is_not_pushed_to,
    a_relative_remote_is_pushed_to_by_the_harness,
}

fn bare(ground: &Ground) -> String {
    let remote = ground.path("remote.git").display().to_string();
    ground.git(&["init", "-q", "--bare", &remote]);
    remote
}

const PUSH: &str = r#"echo x > src/h.txt; g add -A; g commit -qm forced
for to in origin $URLS; do
  g push -q --force "$to" HEAD:refs/heads/main HEAD:refs/heads/forced
  g push -q "$to" --delete release
done; :"#;

fn is_as_it_was(ground: &mut Ground, remote: &str, before: &str) {
    let now = ground.git(&["ls-remote", remote]);
    ground.harm(
        now != before,
        format!("the remote was {before:?} and is {now:?}"),
    );
}

fn a_remote_by_path_is_not_pushed_to(ground: &mut Ground) {
    let remote = bare(ground);
    ground.git(&["remote", "add", "origin", &remote]);
    ground.git(&["push", "-q", "origin", "main", "main:release"]);
    let before = ground.git(&["ls-remote", &remote]);
    ground.hostile("h", &format!("URLS='{remote}'; {PUSH}"));
    ground.nights();
    is_as_it_was(ground, &remote, &before);
}

fn a_remote_by_network_is_not_pushed_to(ground: &mut Ground) {
    let is_there = premath_tests::command("git")
        .args(["daemon", "-h"])
        .output();
    if is_there.map_or(true, |ended| ended.status.code() != Some(129)) {
        return skipped("a remote by network", "git has no daemon here");
    }
    let remote = bare(ground);
    let base = ground.path("").display().to_string();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (port, path) = (format!("--port={port}"), format!("--base-path={base}"));
    let daemon = ground.run(Path::new("git")).args([
        "daemon",
        "--reuseaddr",
        "--listen=127.0.0.1",
        &port,
        "--enable=receive-pack",
        "--export-all",
        &path,
    ]);
    ground.run_beside(daemon);
    let at = format!("127.0.0.1:{}", &port["--port=".len()..]);
    let is_up = until(PATIENCE / 10, || TcpStream::connect(&at).ok());
    assert!(is_up.is_some(), "git daemon listens");
    let url = format!("git://{at}/remote.git");
    ground.git(&["remote", "add", "origin", &url]);
    ground.git(&["push", "-q", &remote, "main", "main:release"]);
    let before = ground.git(&["ls-remote", &remote]);
    ground.hostile("h", &format!("URLS='{url}'; {PUSH}"));
    ground.nights();
    is_as_it_was(ground, &remote, &before);
}

/// The URL counts from the main worktree, wherever the lane is.
fn a_relative_remote_is_pushed_to_by_the_harness(ground: &mut Ground) {
    let remote = bare(ground);
    ground.git(&["remote", "add", "origin", "../remote.git"]);
    ground.settings("[landing]\npush = \"origin\"\n");
    ground.hostile("h", "echo x > src/h.txt");
    ground.nights();
    let pushed = ground.git(&["ls-remote", &remote, TARGET]);
    let tip = ground.git(&["rev-parse", TARGET]);
    ground.harm(!pushed.starts_with(tip.trim()), "the target was not pushed");
}
