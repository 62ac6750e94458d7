//! Which commits begin with the build state of the base.

use super::lane::Lane;
use crate::tree::layer::Layer;

fn landed(lane: &Lane) -> String {
    let tree = lane.tree.keep_content(&lane.base.commit).unwrap();
    let repository = &lane.tree.repository;
    let base = lane.tree.find_commit(&lane.base.commit).unwrap();
    let tree = repository.find_tree(tree.parse().unwrap()).unwrap();
    let author = base.author().to_owned();
    let commit = repository.commit(None, &author, &author, "c", &tree, &[&base]);
    commit.unwrap().to_string()
}

#[test]
fn a_change_of_a_vendored_dependency_is_built_from_nothing() {
    let lane = Lane::new();
    let fits = || {
        let layer = Layer::default();
        lane.tree.fits(&layer, &lane.base.commit, &landed(&lane))
    };
    lane.write("b.txt", "changed");
    lane.write("vendored/own.rs", "no source of cargo");
    assert!(fits().unwrap());
    lane.write("vendored/foo/.cargo-checksum.json", "{}");
    lane.write("vendored/foo/src/lib.rs", "changed");
    assert!(!fits().unwrap());
}
