//! The file that an agent is signed in by: it is renewed in a step, comes back
//! to the user, and is the next step's; another account's does not.

use crate::agents::{batch, modes, reaches_alone};
use crate::steps::fast_retries;
use premath_evidence::Agent;
use premath_tests::agents::{Installed, Profile, missing};
use premath_tests::model::{
    HOLDER, Holder, Journal, ModelServer, Scripts, access_token, refresh_token, sign_in,
};
use premath_tests::{PATIENCE, Scratch, issue, skipped, until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Issues that are worked on in this order.
fn in_order(ids: &[&str]) -> Vec<Value> {
    let row = |(at, id): (usize, &&str)| {
        let mut row = issue(id);
        row["priority"] = json!(at);
        row["title"] = json!(format!("Do what is asked, play:work:{id}"));
        row
    };
    ids.iter().enumerate().map(row).collect()
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn what_codex_renews_is_the_users_and_the_next_steps() {
    let Some(installed) = Installed::find(Agent::Codex) else {
        return skipped("a renewed sign-in of Codex", &missing(Agent::Codex));
    };
    for mode in modes("a renewed sign-in of Codex") {
        codex_renews_in(mode, &installed);
    }
}

fn codex_renews_in(mode: &str, installed: &Installed) {
    let ids = ["first", "second"];
    let scratch = Scratch::with_issues(1, &in_order(&ids));
    let folder = scratch.folder().join("scripts");
    fs::create_dir_all(&folder).unwrap();
    let write = "echo done > \"src/$PREMATH_ISSUE_ID.txt\"";
    let script = json!({"about": "Edits once.", "turns": [
        {"answer": {"calls": [{"shell": write}]}},
        {"answer": {"text": "Done."}},
    ]});
    fs::write(folder.join("work.json"), script.to_string()).unwrap();
    let scripts = Scripts::of_folder(&folder).unwrap();
    let server = ModelServer::start(scripts, Journal::default(), None).unwrap();
    let home = scratch.folder().join("home");
    let profile = Profile::set_up(installed, &home, &server.url()).signed_in();
    let file = home.join(".codex/auth.json");
    let before = read(&file);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let run = batch(&scratch, installed, &profile).args(["--sandbox", mode]);
    if mode == "namespaces" {
        reaches_alone(&scratch, &server);
    }
    let ended = run.start().wait_within(PATIENCE * 3).exits(0);
    for id in ids {
        assert_eq!(scratch.issue(id)["status"], "closed", "{}", ended.stderr);
    }
    // A second renewal of the first token would have been refused.
    assert_eq!(server.renewals(), [refresh_token(1)], "{mode}");
    let asked = server.turns().len();
    assert_eq!(server.bearers(), vec![access_token(2); asked], "{mode}");
    let mut after = read(&file);
    assert_eq!(after["tokens"], sign_in(HOLDER, 2)["tokens"], "{mode}");
    assert_ne!(after["last_refresh"], before["last_refresh"]);
    for field in ["tokens", "last_refresh"] {
        after[field] = before[field].clone();
    }
    assert_eq!(after, before);
    let rights = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(rights, 0o640);
}

/// What each issue's work does with the file; it is replaced as agents do it.
fn work(forged: &[(&str, Value)]) -> String {
    let mut work = String::from(
        "set -e\nfile=\"$HOME/.codex/auth.json\"\nput() { cat > \"$file.new\"; mv \"$file.new\" \"$file\"; }\ncase $PREMATH_ISSUE_ID in\n",
    );
    for (id, document) in forged {
        work.push_str(&format!("{id}) put <<'END'\n{document}\nEND\n;;\n"));
    }
    let sees = refresh_token(2);
    work.push_str(&format!(
        "sees-*) grep -q '\"{sees}\"' \"$file\" ;;\nesac\n"
    ));
    // The user signs in again meanwhile.
    work.push_str("if [ \"$PREMATH_ISSUE_ID\" = late ]; then touch src/ready; until [ -e src/go ]; do sleep 0.05; done; rm src/ready src/go; fi\n");
    work.push_str("echo done > \"src/$PREMATH_ISSUE_ID.txt\"");
    work
}

#[test]
fn a_sign_in_of_another_account_or_an_older_one_does_not_come_back() {
    for mode in modes("a forged sign-in") {
        forged_in(mode);
    }
}

fn forged_in(mode: &str) {
    let other = Holder {
        subject: "person-2",
        ..HOLDER
    };
    let account = Holder {
        account: "account-2",
        ..HOLDER
    };
    let mut key = sign_in(HOLDER, 3);
    key["OPENAI_API_KEY"] = json!("key-of-another");
    let forged = [
        ("renews", sign_in(HOLDER, 2)),
        ("subject", sign_in(other, 3)),
        ("account", sign_in(account, 3)),
        ("key", key),
        ("garbage", json!("no sign-in")),
        ("late", sign_in(HOLDER, 4)),
    ];
    let ids = [
        "renews", "sees-1", "subject", "sees-2", "account", "sees-3", "key", "garbage", "sees-4",
        "late",
    ];
    let scratch = Scratch::with_issues(1, &in_order(&ids));
    fast_retries(&scratch);
    let file = scratch.home().join(".codex/auth.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, sign_in(HOLDER, 1).to_string()).unwrap();
    let verify = "test -e src/$PREMATH_ISSUE_ID.txt";
    let run = scratch.batch(&work(&forged), verify);
    // The home is the user's own, and no step writes it.
    let run = run.without("PREMATH_SANDBOX_WRITE");
    let running = run.args(["--sandbox", mode]).start();
    let lane: PathBuf = scratch.lanes[0].join("src");
    until(PATIENCE, || lane.join("ready").exists().then_some(())).expect("the last issue's work");
    assert_eq!(read(&file), sign_in(HOLDER, 2), "{mode}");
    let anew = sign_in(HOLDER, 9);
    fs::write(&file, anew.to_string()).unwrap();
    fs::write(lane.join("go"), "").unwrap();
    let ended = running.wait_within(PATIENCE).exits(0);
    for id in ids {
        assert_eq!(
            scratch.issue(id)["status"],
            "closed",
            "{id}: {}",
            ended.stderr
        );
    }
    assert_eq!(read(&file), anew, "{mode}");
}
