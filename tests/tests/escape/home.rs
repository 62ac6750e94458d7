//! Attack 12: state of tools in the home, which runs in the user's next session
//! of the tool.

use crate::ground::Ground;

attacks! {
    state_of_tools_is_not_written,
    state_of_tools_is_not_moved,
}

/// Files that a tool runs or obeys, and that are there before.
const THERE: [&str; 14] = [
    ".bashrc",
    ".gitconfig",
    ".npmrc",
    ".gradle/gradle.properties",
    ".claude/settings.json",
    ".claude.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".config/opencode/opencode.json",
    ".cargo/registry/src/index/crate-1.0.0/build.rs",
    ".cargo/config.toml",
    ".m2/repository/a/a.jar",
    "go/pkg/mod/a@v1/a.go",
    ".cache/pip/wheel.whl",
];

/// Files that a tool would run or obey if they were there.
const NEW: [&str; 10] = [
    ".gradle/init.d/evil.gradle",
    ".npm/_cacache/evil",
    ".claude/commands/evil.md",
    ".codex/hooks.json",
    ".gemini/extensions/evil/gemini-extension.json",
    ".local/share/opencode/evil.json",
    ".local/bin/git",
    ".config/git/config",
    ".config/systemd/user/evil.service",
    ".local/state/mise/tracked-configs/evil",
];

fn prepared(ground: &mut Ground) {
    for name in THERE {
        ground.write(&format!("home/{name}"), "of the user\n");
    }
    // Git reads this one.
    ground.write("home/.gitconfig", "[alias]\n\tst = status\n");
    for folder in [
        ".npm",
        ".local/share/opencode",
        ".local/state/mise",
        ".gradle",
    ] {
        ground.write(&format!("home/{folder}/kept"), "of the user\n");
    }
}

fn state_of_tools_is_not_written(ground: &mut Ground) {
    prepared(ground);
    let mut script = String::from("evil() { mkdir -p \"${1%/*}\"; echo evil >> \"$1\"; }\n");
    for name in THERE.iter().chain(&NEW) {
        script.push_str(&format!("evil \"$USERHOME/{name}\"; evil ~/{name}\n"));
    }
    ground.hostile("h", &format!("{script}:"));
    ground.nights();
}

fn state_of_tools_is_not_moved(ground: &mut Ground) {
    prepared(ground);
    let script = r#"for home in "$USERHOME" "$HOME"; do ( cd "$home" 2>/dev/null && {
for at in .claude .codex .gemini .cache .npm .gradle .m2 go .cargo/registry; do
  mv "$at" "$at.old"; ln -s / "$at"; chmod -R 777 "$at.old" "$at/kept"; rm -rf "$at"
done 2>/dev/null; find . -type f -exec rm -f {} + 2>/dev/null; } ); done; :"#;
    ground.hostile("h", script);
    ground.nights();
}
