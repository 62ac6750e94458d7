//! The example is embedded: a file that is added to it makes a new binary.

fn main() {
    println!("cargo:rerun-if-changed=../worktrees.example");
}
