//! The principles of isolation that no single attack represents.

use crate::ground::{Ground, Mode};
use premath_tests::skipped;

attacks! {
    nothing_of_the_users_is_written,
    secrets_of_the_user_are_not_read,
    branches_of_the_user_are_not_read,
    variables_of_the_user_do_not_arrive,
    state_of_other_lanes_is_not_seen,
    a_mode_that_does_not_work_is_refused,
    processes_of_the_user_are_not_seen,
    a_step_that_does_no_harm_is_found_to_do_none,
}

/// Principle 2 and 8: every file and folder that the step sees outside its lane
/// is tried.
fn nothing_of_the_users_is_written(ground: &mut Ground) {
    // The step's git folder is its own, wherever it is.
    let script = r#"find "$ROOT" "$USERHOME" "$FOLDER/outside" "$ROOT"-lanes -path "$LANE" -prune -o -name step.git -prune -o -type f -print 2>/dev/null |
while read -r at; do ( : >> "$at" ) 2>/dev/null && echo "writable: $at"; done
find "$ROOT" "$USERHOME" "$FOLDER/outside" "$ROOT"-lanes -path "$LANE" -prune -o -name step.git -prune -o -type d -print 2>/dev/null |
while read -r at; do ( : > "$at/premath-escape" ) 2>/dev/null && echo "writable: $at/" && rm -f "$at/premath-escape"; done
for at in / /etc /usr /usr/local/bin /var /var/tmp /run /dev/shm /opt /srv; do
  ( : > "$at/premath-escape-$$" ) 2>/dev/null && [ -e "$at/premath-escape-$$" ] && echo "in: $at"
done; :"#;
    ground.hostile("h", script);
    ground.night();
    let said = ground.output("h");
    let writable: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("writable:"))
        .take(12)
        .collect();
    ground.harm(!writable.is_empty(), format!("{writable:#?}"));
}

/// Principle 9.
fn secrets_of_the_user_are_not_read(ground: &mut Ground) {
    let secrets = [
        "home/.ssh/id_rsa",
        "home/.aws/credentials",
        "home/.config/gh/hosts.yml",
        "home/.netrc",
        "home/.git-credentials",
        "home/.mozilla/firefox/cookies.sqlite",
        "home/.kube/config",
        "home/.docker/config.json",
        "home/.gnupg/private-keys-v1.d/key",
        "home/other/secret.txt",
        "repo/.env",
        "outside/secret.txt",
    ];
    for (number, name) in secrets.iter().enumerate() {
        ground.write(name, &format!("SECRET-{number}\n"));
    }
    ground.write("repo/.gitignore", "/ignored/\n/.env\n");
    ground.commits("ignore");
    let script = r#"for at in home/.ssh/id_rsa home/.aws/credentials home/.config/gh/hosts.yml home/.netrc home/.git-credentials \
  home/.mozilla/firefox/cookies.sqlite home/.kube/config home/.docker/config.json home/.gnupg/private-keys-v1.d/key \
  home/other/secret.txt repo/.env outside/secret.txt; do cat "$FOLDER/$at"; done
cat "/proc/1/root$USERHOME/.netrc" "/proc/$PPID/root$USERHOME/.netrc" "/proc/$PPID/cwd/../repo/.env"; :"#;
    ground.hostile("h", script);
    ground.nights();
    let said = ground.output("h");
    for (number, name) in secrets.iter().enumerate() {
        let is_read = said.lines().any(|line| line == format!("SECRET-{number}"));
        ground.harm(is_read, format!("a step read {name}"));
    }
}

/// Principle 9: other branches, the stash, and what no branch holds any more.
fn branches_of_the_user_are_not_read(ground: &mut Ground) {
    ground.git(&["checkout", "-q", "-b", "private"]);
    ground.write("repo/private.txt", "SECRET-BRANCH\n");
    ground.commits("private");
    ground.git(&["checkout", "-q", "main"]);
    ground.write("repo/src/base.txt", "SECRET-STASH\n");
    ground.git(&["stash", "-q"]);
    ground.git(&[
        "config",
        "http.https://forge.localhost/.extraheader",
        "Authorization: SECRET-HEADER",
    ]);
    let script = r#"git cat-file -p refs/heads/private:private.txt; git cat-file -p refs/stash:src/base.txt
git for-each-ref; git config --list; cat "$ROOT/.git/config"; git stash list; :"#;
    // Git names in its errors what it does not find.
    let script = format!("{{ {script}\n}} 2> /dev/null");
    ground.hostile("h", &script);
    ground.nights();
    let said = ground.output("h");
    for secret in [
        "SECRET-BRANCH",
        "SECRET-STASH",
        "SECRET-HEADER",
        "refs/heads/private",
    ] {
        ground.harm(said.contains(secret), format!("a step read {secret}"));
    }
}

/// Principle 8: the environment is a list of what passes.
fn variables_of_the_user_do_not_arrive(ground: &mut Ground) {
    let names = [
        "SSH_AUTH_SOCK",
        "TMUX",
        "DBUS_SESSION_BUS_ADDRESS",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "NPM_TOKEN",
        "GIT_ASKPASS",
        "GIT_SSH_COMMAND",
        "LD_PRELOAD_DUMMY",
        "XDG_RUNTIME_DIR",
    ];
    for (number, name) in names.iter().enumerate() {
        ground.environment(name, &format!("/SECRET-{number}/"));
    }
    ground.hostile("h", "env; tr '\\0' '\\n' < /proc/$PPID/environ; :");
    ground.nights();
    let said = ground.output("h");
    for (number, name) in names.iter().enumerate() {
        let arrived = said.contains(&format!("/SECRET-{number}/"));
        ground.harm(arrived, format!("{name} arrives at a step"));
    }
}

/// Principle 5: what the harness goes by is out of sight.
fn state_of_other_lanes_is_not_seen(ground: &mut Ground) {
    let script = r#"find "$ROOT/.premath" "$ROOT/artifacts" "$ROOT"-lanes -path "$LANE" -prune -o -name step.git -prune -o -type f -print 2>/dev/null |
while read -r at; do head -c 1 "$at" > /dev/null 2>&1 && echo "readable: $at"; done; :"#;
    ground.hostile("h", script);
    ground.nights();
    let said = ground.output("h");
    let readable: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("readable:"))
        // Issues may be read: an agent looks them up.
        .filter(|line| !line.contains("/issues.jsonl"))
        .take(12)
        .collect();
    ground.harm(!readable.is_empty(), format!("{readable:#?}"));
}

/// Principle 8: a batch never runs less confined than was asked for.
fn a_mode_that_does_not_work_is_refused(ground: &mut Ground) {
    if ground.mode() == Mode::Landlock {
        return skipped(
            "a mode that does not work",
            "only namespaces can be switched off here",
        );
    }
    ground.hostile("h", "echo x > \"$FOLDER/outside/ran\"");
    ground.begins();
    // A kernel that has no user namespaces to give.
    let blocked = r#"echo 0 > /proc/sys/user/max_user_namespaces && exec "$@""#;
    let within = ["unshare", "-U", "--keep-caps", "sh", "-c", blocked, "sh"];
    let ended = ground.harness_behind(|run| run.args(within)).end();
    ground.harm(
        ended.code != Some(3),
        format!("the batch was not refused: exit {:?}", ended.code),
    );
    ground.is_cut();
    let ran = ground.path("outside/ran").exists();
    ground.harm(ran, "the batch ran unconfined");
}

/// Principle 8: process ids of the user's are not the step's to see.
fn processes_of_the_user_are_not_seen(ground: &mut Ground) {
    if ground.mode() == Mode::Landlock {
        return skipped("processes of the user", "Landlock hides none");
    }
    ground.bystander();
    let script = r#"for at in /proc/[0-9]*; do
  tr '\0' ' ' < "$at/cmdline" 2>/dev/null | grep -q '^sleep 600' && echo "seen: $at"
done; :"#;
    ground.hostile("h", script);
    ground.nights();
    let seen = ground
        .output("h")
        .lines()
        .any(|line| line.starts_with("seen:"));
    ground.harm(seen, "a step sees processes of the user");
}

/// The control of every other test: what they find is of the attack.
fn a_step_that_does_no_harm_is_found_to_do_none(ground: &mut Ground) {
    ground.hostile("h", "echo x > src/h.txt");
    ground.nights();
}
