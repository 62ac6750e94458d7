//! The pages of the documentation: their shell blocks are run, the output that
//! they show is compared in form, and their links are checked.
//!
//! | fence | meaning |
//! |---|---|
//! | `sh` | commands; they must end with 0 |
//! | `text`, right below | what the commands print |
//! | `console` | commands after `$ `, each with what it prints |
//! | `toml,apply` | keys that are put into `harness.toml` of the current folder |
//! | `sh,exit=1`, `console,exit=1` | the last command that fails ends with 1 |
//! | `sh,needs-namespaces` | runs where the sandbox mode `namespaces` works |
//! | `sh,no-run="reason"` | cannot run in a test, and why; counted and printed |
//! | `<!-- setup … -->` | commands that a reader does not see |
//!
//! The blocks of a page run one after another in one shell, in an empty folder
//! that the page calls `DIR`. A line `…` matches any lines, `…` in a line for
//! any text. `PREMATH_PAGES=write` replaces output that is not current.

mod fence;
mod form;
mod link;
mod shell;

pub use fence::{Block, Kind, blocks};
pub use form::{matches, normal, renewed};
pub use link::{anchors, broken_links};
pub use shell::{Outcome, PageRun};

use crate::surface::files;
use std::path::Path;

/// Returns the pages of a checkout, by their path from its root.
pub fn pages(root: &Path) -> Vec<String> {
    let mut names = files(root);
    names.retain(|name| name.starts_with("docs/") && name.ends_with(".md"));
    names
}
