//! Where the work of a step is kept, as a row names it: branches, and folders for what
//! git cannot take, separated by commas; in another repository with its world.

/// What follows where another repository has it.
const ELSEWHERE: &str = " (in world ";

/// Names where work is kept, with the world that has it.
pub fn in_world(salvage: &str, world: &str) -> String {
    format!("{salvage}{ELSEWHERE}{world})")
}

/// Returns whether another repository has the work.
pub fn is_elsewhere(salvage: &str) -> bool {
    salvage.contains(ELSEWHERE)
}

/// Returns whether a part names a branch of the harness.
pub fn is_branch(part: &str) -> bool {
    part.starts_with("harness/") || part.starts_with("harness-")
}

/// Returns the parts of a name.
pub fn parts(salvage: &str) -> impl Iterator<Item = &str> {
    salvage.split(", ")
}

/// Returns the branches of this repository that a row names.
pub fn branches(salvage: &str) -> impl Iterator<Item = &str> {
    let here = Some(salvage).filter(|salvage| !is_elsewhere(salvage));
    here.into_iter()
        .flat_map(parts)
        .filter(|part| is_branch(part))
}

/// Returns the folders of this repository that a row names.
pub fn folders(salvage: &str) -> impl Iterator<Item = &str> {
    let here = Some(salvage).filter(|salvage| !is_elsewhere(salvage));
    here.into_iter()
        .flat_map(parts)
        .filter(|part| !is_branch(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_branches_of_another_repository_are_left_out() {
        let named = |salvage| branches(salvage).collect::<Vec<_>>();
        assert_eq!(
            named("harness/salvage/a/1, .git/premath-salvage/a/1, harness-salvage/a/1"),
            ["harness/salvage/a/1", "harness-salvage/a/1"]
        );
        assert_eq!(named(&in_world("harness/salvage/a/1", "w")), [""; 0]);
        let found: Vec<_> = folders("harness/salvage/a/1, .git/premath-salvage/a/1").collect();
        assert_eq!(found, [".git/premath-salvage/a/1"]);
    }
}
