//! Cache folders of a layer, and the place for one in a worktree.

use super::Scratch;
use crate::tree::Layer;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a build\n";

#[test]
fn caches_are_tagged_folders_at_the_top() {
    let (scratch, _) = Scratch::new();
    scratch.write("target/CACHEDIR.TAG", TAG);
    scratch.write("inner/target/CACHEDIR.TAG", TAG);
    scratch.write("elsewhere", TAG);
    scratch.write("wrong/CACHEDIR.TAG", "Signature: 0\n");
    scratch.write("plain/file", "x");
    scratch.write("linked/file", "x");
    let at = |name: &str| scratch.folder.path().join(name);
    symlink(at("elsewhere"), at("linked/CACHEDIR.TAG")).unwrap();
    symlink(at("target"), at("link")).unwrap();
    fs::create_dir_all(at("folder/CACHEDIR.TAG")).unwrap();
    let roots = [
        "folder",
        "inner/target",
        "link",
        "linked",
        "plain",
        "target",
        "wrong",
    ];
    let layer = Layer {
        roots: roots.map(str::to_owned).into(),
        ..Layer::default()
    };
    assert_eq!(layer.caches(scratch.folder.path()).unwrap(), ["target"]);
    assert!(layer.caches(Path::new("/nowhere")).is_err());
}

#[test]
fn a_cache_has_a_place_where_git_ignores_it_and_nothing_is_there() {
    let (scratch, tree) = Scratch::new();
    let way = |name: &str| tree.make_way_for(name).unwrap();
    assert!(!way("out"), "a file in it would be work");
    assert!(!scratch.folder.path().join("out").exists());
    assert!(way("target"));
    assert!(scratch.folder.path().join("target").is_dir());
    assert!(way("target"), "it is empty");
    scratch.write("target/file", "x");
    assert!(!way("target"), "it holds something");
    let target = scratch.folder.path().join("target");
    fs::remove_dir_all(&target).unwrap();
    symlink("/tmp", &target).unwrap();
    assert!(!way("target"), "it is a link");
}
