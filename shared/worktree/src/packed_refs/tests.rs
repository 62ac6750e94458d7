use super::*;
use git2::Oid;

fn repository() -> (tempfile::TempDir, Repository, Oid) {
    let folder = tempfile::tempdir().unwrap();
    let git = Repository::init(folder.path()).unwrap();
    let one = git.blob(b"1").unwrap();
    (folder, git, one)
}

fn packed(git: &Repository) -> String {
    fs::read_to_string(git.path().join("packed-refs")).unwrap()
}

#[test]
fn a_packed_reference_gets_a_file_and_keeps_its_value() {
    let (_folder, git, one) = repository();
    let two = git.blob(b"2").unwrap();
    let head = "# pack-refs with: peeled fully-peeled sorted\n";
    let text = format!("{head}{one} refs/heads/a\n{one} refs/tags/t\n^{two}\n{two} refs/tags/u\n");
    fs::write(git.path().join("packed-refs"), text).unwrap();
    // A folder without references has the name.
    fs::create_dir_all(git.path().join("refs/tags/t")).unwrap();
    let refs = PackedRefs::lock(&git).unwrap();
    refs.unpack("refs/tags/t").unwrap();
    refs.unpack("refs/tags/none").unwrap();
    assert!(git.path().join(LOCK).exists());
    drop(refs);
    assert!(!git.path().join(LOCK).exists());
    assert_eq!(
        packed(&git),
        format!("{head}{one} refs/heads/a\n{two} refs/tags/u\n")
    );
    assert_eq!(git.refname_to_id("refs/tags/t").unwrap(), one);
}

#[test]
fn a_value_that_is_not_the_packed_one_stays() {
    let (_folder, git, one) = repository();
    let two = git.blob(b"2").unwrap();
    git.reference("refs/heads/a", two, true, "").unwrap();
    fs::write(
        git.path().join("packed-refs"),
        format!("{one} refs/heads/a\n"),
    )
    .unwrap();
    PackedRefs::lock(&git)
        .unwrap()
        .unpack("refs/heads/a")
        .unwrap();
    assert_eq!(packed(&git), "");
    assert_eq!(git.refname_to_id("refs/heads/a").unwrap(), two);
}

#[test]
fn nothing_is_written_while_another_process_has_a_lock() {
    let (_folder, git, one) = repository();
    let text = format!("{one} refs/heads/a\n");
    fs::write(git.path().join("packed-refs"), &text).unwrap();
    fs::write(git.path().join("refs/heads/a.lock"), "").unwrap();
    let refs = PackedRefs::lock(&git).unwrap();
    let held = refs.unpack("refs/heads/a").unwrap_err();
    assert_eq!(held.code(), ErrorCode::Locked);
    assert_eq!(
        PackedRefs::lock(&git).unwrap_err().code(),
        ErrorCode::Locked
    );
    drop(refs);
    assert_eq!(packed(&git), text);
    assert!(git.path().join("refs/heads/a.lock").exists());
}

#[test]
fn a_file_that_is_a_link_or_too_long_is_left_alone() {
    let (folder, git, one) = repository();
    let (packed, elsewhere) = (git.path().join("packed-refs"), folder.path().join("x"));
    let text = format!("{one} refs/heads/a\n");
    fs::write(&elsewhere, &text).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &packed).unwrap();
    let unpack = || PackedRefs::lock(&git).unwrap().unpack("refs/heads/a");
    unpack().unwrap_err();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), text);
    fs::remove_file(&packed).unwrap();
    let long = File::create_new(&packed).unwrap();
    long.set_len(LENGTH_MAX + 1).unwrap();
    unpack().unwrap_err();
    assert_eq!(long.metadata().unwrap().len(), LENGTH_MAX + 1);
}
