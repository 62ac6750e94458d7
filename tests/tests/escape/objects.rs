//! Attack 4: the store of objects that every branch of the user's shares.

use crate::ground::{Ground, TARGET};

attacks! {
    objects_are_deleted,
    objects_are_replaced,
    the_store_borrows_from_the_steps_own,
    the_store_holds_garbage,
    objects_cannot_be_read,
}

fn objects_are_deleted(ground: &mut Ground) {
    let script = r#"for c in $(commons); do find "$c/objects" -type f -exec rm -f {} +; done"#;
    ground.hostile("h", script);
    ground.nights();
}

/// The file of one object is put in the place of another's, so that a file of
/// the user's history has another content with an empty diff.
fn objects_are_replaced(ground: &mut Ground) {
    let script = r#"forged=$(echo forged | git hash-object -w --stdin)
for c in $(commons); do
  for victim in $(git rev-parse HEAD:src/base.txt HEAD:verify.sh 2>/dev/null); do
    at() { echo "$c/objects/$(echo "$1" | cut -c1-2)/$(echo "$1" | cut -c3-)"; }
    rm -f "$(at "$victim")"; cp "$(at "$forged")" "$(at "$victim")"
  done
done"#;
    ground.hostile("h", script);
    ground.nights();
    let base = ground.try_git(&["cat-file", "blob", "main:src/base.txt"]);
    ground.harm(
        base.stdout != "base\n",
        format!("main holds {:?} at src/base.txt", base.stdout),
    );
    let landed = ground.landed("src/base.txt");
    ground.harm(
        landed.as_deref() != Some("base\n"),
        format!("{TARGET} holds {landed:?} at src/base.txt"),
    );
}

fn the_store_borrows_from_the_steps_own(ground: &mut Ground) {
    let script = r#"mkdir -p ignored; git init -q --bare ignored/store
for c in $(commons); do
  mkdir -p "$c/objects/info"
  echo "$LANE/ignored/store/objects" > "$c/objects/info/alternates"
done
export GIT_OBJECT_DIRECTORY=$LANE/ignored/store/objects
echo x > src/h.txt; g add -A; g commit -qm borrowed"#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_store_holds_garbage(ground: &mut Ground) {
    let script = r#"for c in $(commons); do
  for name in pack/pack-0000000000000000000000000000000000000000.idx pack/pack-0000000000000000000000000000000000000000.pack pack/multi-pack-index info/commit-graph info/packs; do
    mkdir -p "$c/objects/${name%/*}"; head -c 5000 /dev/urandom > "$c/objects/$name"
  done
  mkfifo "$c/objects/pack/pack-1111111111111111111111111111111111111111.idx"
done"#;
    ground.hostile("h", script);
    ground.nights();
}

fn objects_cannot_be_read(ground: &mut Ground) {
    let script =
        r#"for c in $(commons); do chmod -R a-rwx "$c/objects"/?? "$c/objects/pack"; done"#;
    ground.hostile("h", script);
    ground.nights();
}
