//! A shell script that takes the steps of an issue that nothing may leave out,
//! with plain tools: rows that are on the disk before the next step, a clean
//! worktree, the work, its tree, a verification in a clean checkout, and a file
//! for each thing that was found.
//!
//! What it leaves out is what makes the batch safe: it confines nothing, takes
//! no evidence, and ends no process that its commands left.

use crate::batch::LANES;
use crate::figure::{Wrong, timed};
use crate::programs::{command, run};
use crate::scratch::Scratch;
use git2::Repository;
use std::fs;
use std::path::Path;

/// The steps of one issue. `SLOT` is the number of the lane, from 0.
const SCRIPT: &str = r#"set -e
issue=$1 lane=../lane-$((SLOT + 1)) check=../check-$((SLOT + 1))
row() {
    flock "$1.flock" sh -c 'echo "$2" >> "$1" && sync -d "$1"' row "$1" "$issue $2"
}
found() {
    echo "$issue $1" > "found/.$issue.$1"
    mv "found/.$issue.$1" "found/$issue.$1"
}
row memory claimed
git -C "$lane" reset -q --hard
git -C "$lane" clean -fdq
(cd "$lane" && sh -c true) > "streams/$issue.work" 2>&1
found work
git -C "$lane" add -A
tree=$(git -C "$lane" write-tree)
git -C "$check" read-tree --reset -u "$tree"
git -C "$check" clean -fdxq
(cd "$check" && sh -c true) > "streams/$issue.verify" 2>&1
found verify
found turn
row memory closed
found mutation
row log ended
"#;

/// Has a shell take these steps for so many issues; returns its seconds.
pub(crate) fn shell(folder: &Path, files: usize, count: usize) -> Result<f64, Wrong> {
    let scratch = Scratch::set_up(folder, LANES, files, 0)?;
    let git = Repository::open(&scratch.repository)?;
    for number in 1..=LANES {
        let name = format!("check-{number}");
        git.worktree(&name, &folder.join(&name), None)?;
    }
    for name in ["streams", "found"] {
        fs::create_dir(scratch.repository.join(name))?;
    }
    let script = folder.join("step");
    fs::write(&script, SCRIPT)?;
    let line = format!(
        "seq {count} | xargs -P{LANES} -I{{}} --process-slot-var=SLOT sh '{}' {{}}",
        script.display()
    );
    let mut shell = command("sh");
    shell.args(["-c", &line]).current_dir(&scratch.repository);
    let (_, elapsed) = timed(|| run(&mut shell))?;
    let log = fs::read_to_string(scratch.repository.join("log")).unwrap_or_default();
    let ended = log.lines().count();
    if ended != count {
        return Err(Wrong::because(format!(
            "the script ended {ended} of {count} issues"
        )));
    }
    Ok(elapsed.as_secs_f64())
}
