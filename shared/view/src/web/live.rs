//! The parts of the overview that are kept up to date.

use super::overview::{Overview, PARTS};
use crate::figures::Viewer;
use crate::status::StatusView;

/// A part of the overview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Its name, which an element of the page has too.
    pub name: &'static str,
    /// Its HTML.
    pub html: String,
}

/// Writes the parts of the overview.
pub fn fragments(status: &StatusView, viewer: &Viewer, controls: bool) -> Vec<Fragment> {
    let overview = Overview {
        status,
        viewer,
        controls,
    };
    let parts = PARTS.iter();
    parts
        .map(|(name, part)| Fragment {
            name,
            html: part(&overview),
        })
        .collect()
}
