//! Attack 14: files that no lane recovers from.

use crate::ground::{Ground, TARGET};

attacks! {
    folders_are_nested_deeper_than_a_path_reaches,
    a_path_of_a_step_does_not_fill_a_report,
    the_git_folder_is_deleted,
    the_git_file_is_deleted,
    a_tree_has_an_entry_above_itself,
    a_tree_has_an_entry_named_as_the_git_folder,
    the_index_and_head_are_garbage,
    folders_cannot_be_opened,
    the_lane_itself_cannot_be_opened,
    the_folder_of_a_steps_files_cannot_be_opened,
    the_whole_lane_is_deleted,
    names_are_hostile,
}

fn folders_are_nested_deeper_than_a_path_reaches(ground: &mut Ground) {
    let script = r#"name=$(printf %040d 0); ( i=0; while [ $i -lt 300 ]; do
  mkdir "$name" && cd -P "$name" 2>/dev/null || break; i=$((i+1)); done; echo x > deep.txt )"#;
    ground.hostile("h", script);
    let script = r#"mkdir -p ignored; cd ignored; name=$(printf %0200d 0); i=0
while [ $i -lt 300 ]; do mkdir "$name" && cd -P "./$name" 2>/dev/null || break; i=$((i+1)); done"#;
    ground.hostile("i", script);
    ground.nights();
}

/// A path of 600 KB, and texts as long, are cut where they are reported.
fn a_path_of_a_step_does_not_fill_a_report(ground: &mut Ground) {
    let deep = r#"python3 - <<'END'
import os
part = "p" * 200
for top, shut in ("src", False), (".", True), ("ignored", True):
    os.makedirs(top, exist_ok=True)
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir(part, dir_fd=here)
        below = os.open(part, os.O_RDONLY, dir_fd=here)
        os.close(here); here = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    if shut: os.fchmod(here, 0)
END"#;
    let links = r#"name=$(printf %0200d 0 | tr 0 p); at=src; for n in 1 2 3 4 5 6 7 8 9; do at="$at/$name"; done
mkdir -p "$at"; ln -s "../../../../../../../../../../../../$at" "$at/link"; mkfifo "$at/pipe"
mkdir -p "$at/.GIT" "$at/bare/objects" "$at/bare/refs"; echo 'ref: refs/heads/x' > "$at/bare/HEAD""#;
    let protected = r#"name=$(printf %0200d 0 | tr 0 p); mkdir -p ".claude/$name/$name"
for n in 1 2 3 4 5; do echo x > ".claude/$name/$name/$name$n"; done"#;
    let asks = r#"part=$(printf %0200d 0 | tr 0 p); text=$(for n in $(seq 600); do printf '%s/' "$part"; done)
printf '{"title":"%s"}\n{"%s":1}\n' "$text" "$text" >> "$PREMATH_OUTBOX"
printf '{"schema":"%s"}' "$text" > .premath/step/evidence.json"#;
    for (id, script) in [("h", deep), ("i", links), ("j", protected), ("k", asks)] {
        ground.hostile(id, script);
    }
    ground.nights();
    let part = "p".repeat(200);
    let mut found = vec![("the batch says".to_owned(), ground.printed().to_owned())];
    for folder in ["repo/.premath", "repo/artifacts"] {
        found.extend(texts(&ground.path(folder)));
    }
    for (at, text) in found {
        let longest = text
            .split('\n')
            .max_by_key(|line| line.matches(&part).count());
        let times = longest.unwrap_or_default().matches(&part).count();
        let is_whole = times > 40;
        ground.harm(
            is_whole,
            format!("{at}: a path {times} times as long as a name"),
        );
    }
}

/// Reads what the harness wrote below a folder; what steps printed is theirs.
fn texts(folder: &std::path::Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(texts(&path));
        } else if !name.contains(".work.std") && entry.file_type().is_ok_and(|kind| kind.is_file())
        {
            let bytes = std::fs::read(&path).unwrap_or_default();
            found.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}

fn the_git_folder_is_deleted(ground: &mut Ground) {
    let script = r#"for at in $(gits); do rm -rf "$at"/* "$at"; done"#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_git_file_is_deleted(ground: &mut Ground) {
    ground.hostile("h", "rm -rf .git");
    ground.hostile("i", "rm -rf .git; mkdir -p .git/objects .git/refs");
    ground.nights();
}

fn a_tree_has_an_entry_above_itself(ground: &mut Ground) {
    let entries = [
        ("h", r"040000 tree $(git rev-parse HEAD:src)\t.."),
        ("i", r"100644 blob $blob\t.."),
        (
            "j",
            r"040000 tree $(printf '040000 tree %s\\t..\\n' $up | git mktree)\tup",
        ),
    ];
    for (id, entry) in entries {
        let script = format!(
            r#"echo x > src/{id}.txt; blob=$(echo x | git hash-object -w --stdin)
up=$(printf '100644 blob %s\tescaped.txt\n' "$blob" | git mktree)
tree=$( {{ git ls-tree HEAD; printf "{entry}\n"; }} | git mktree --missing)
commit=$(g commit-tree -p HEAD -m forged "$tree"); g update-ref HEAD "$commit" || :"#
        );
        ground.hostile(id, &script);
    }
    ground.nights();
    forged_entries(ground);
}

fn a_tree_has_an_entry_named_as_the_git_folder(ground: &mut Ground) {
    for (id, name) in [("h", ".git"), ("i", ".GIT"), ("j", "git~1"), ("k", ".")] {
        let script = format!(
            r#"echo x > src/{id}.txt; hook=$(printf '#!/bin/sh\ntouch %s/outside/ran\n' "$FOLDER" | git hash-object -w --stdin)
hooks=$(printf '100755 blob %s\tpost-checkout\n' "$hook" | git mktree)
inner=$(printf '040000 tree %s\thooks\n' "$hooks" | git mktree)
tree=$( {{ git ls-tree HEAD; printf '040000 tree %s\t{name}\n' "$inner"; }} | git mktree --missing)
commit=$(g commit-tree -p HEAD -m forged "$tree"); g update-ref HEAD "$commit" || :"#
        );
        ground.hostile(id, &script);
    }
    ground.nights();
    forged_entries(ground);
}

fn forged_entries(ground: &mut Ground) {
    let listed = ground
        .try_git(&["ls-tree", "-r", "-t", "--name-only", TARGET])
        .stdout;
    let is_forged =
        |part: &str| matches!(part.to_lowercase().as_str(), "." | ".." | ".git" | "git~1");
    let forged: Vec<&str> = listed
        .lines()
        .filter(|path| path.split('/').any(is_forged))
        .collect();
    ground.harm(!forged.is_empty(), format!("{TARGET} holds {forged:?}"));
}

fn the_index_and_head_are_garbage(ground: &mut Ground) {
    let script = r#"for at in $(gits); do
  for name in index HEAD commondir gitdir ORIG_HEAD; do head -c 4000 /dev/urandom > "$at/$name"; done
done"#;
    ground.hostile("h", script);
    let script = r#"for at in $(gits); do rm -rf "$at/index" "$at/HEAD"; mkdir -p "$at/index/x" "$at/HEAD/x"; done"#;
    ground.hostile("i", script);
    ground.nights();
}

fn folders_cannot_be_opened(ground: &mut Ground) {
    let script = r#"mkdir -p src/shut/in ignored/shut/in; touch src/shut/in/x ignored/shut/in/x
chmod 000 src/shut/in src/shut ignored/shut/in ignored/shut src/base.txt; chmod 500 src ."#;
    ground.hostile("h", script);
    let script = r#"for at in $(gits); do chmod -R a-w "$at"; chmod 000 "$at"; done; chmod 000 .git .premath"#;
    ground.hostile("i", script);
    ground.nights();
}

/// Found by the property over random steps: where such a step failed, too, the
/// lane was lost.
fn the_folder_of_a_steps_files_cannot_be_opened(ground: &mut Ground) {
    ground
        .hostile("h", "chmod 000 .premath; exit 1")
        .may_be_cut();
    ground
        .hostile("i", "chmod 000 .premath/step .premath; exit 1")
        .may_be_cut();
    ground.hostile("j", "chmod 000 .premath; rm src/base.txt");
    ground.hostile("k", "echo x > src/k.txt; chmod 000 .premath");
    ground.nights();
}

fn the_whole_lane_is_deleted(ground: &mut Ground) {
    ground.hostile("h", r#"rm -rf ./* ./.[!.]*"#);
    ground.hostile(
        "i",
        r#"rm -rf "$LANE" "$LANE"/.premath; mkdir -p "$LANE" || :"#,
    );
    ground.nights();
}

fn names_are_hostile(ground: &mut Ground) {
    let script = r#"touch "src/$(printf 'a\nb')" "src/$(printf '\033[31mred')" "src/$(printf '\377\376')" src/-rf 'src/$(touch pwned)' "src/$(printf %0250d 0)"
mkdir -p 'src/.git ' src/.gIt src/con 'src/a\..\b'; touch src/.gIt/config 'src/a\..\b/x'"#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_lane_itself_cannot_be_opened(ground: &mut Ground) {
    ground.hostile("h", "chmod 000 /tmp \"$HOME\" . || :");
    ground.nights();
}
