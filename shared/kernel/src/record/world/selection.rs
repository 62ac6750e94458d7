//! What an issue reports about where it is to be worked on.

use std::collections::BTreeSet;

/// How the label begins by which an issue asks for another world, as in
/// `world:docs`.
pub(crate) const WORLD_LABEL: &str = "world:";

/// Where an issue asks to be worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldSelection<'a> {
    /// The repository of its harness.
    Here,
    /// In the world that the settings know by this name.
    There(&'a str),
    /// In several places at once, or in one without a name.
    Unclear {
        /// What it asks for, as the labels have it.
        asked: String,
        /// What is wrong with that, in words.
        detail: String,
    },
}

impl<'a> WorldSelection<'a> {
    /// Reads the wish from an issue's labels; a repeated label counts once.
    pub fn of(labels: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<&str> = labels
            .into_iter()
            .filter_map(|label| label.trim().strip_prefix(WORLD_LABEL))
            .map(str::trim)
            .collect();
        let mut each = names.iter();
        match (each.next(), each.next()) {
            (None, _) => Self::Here,
            (Some(name), None) if !name.is_empty() => Self::There(name),
            (Some(_), None) => Self::Unclear {
                asked: WORLD_LABEL.to_owned(),
                detail: format!("the label `{WORLD_LABEL}` names no world"),
            },
            (Some(_), Some(_)) => {
                let labels = names.iter().map(|name| format!("{WORLD_LABEL}{name}"));
                let asked = labels.collect::<Vec<String>>().join(", ");
                Self::Unclear {
                    detail: format!("the issue asks for several worlds at once: {asked}"),
                    asked,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issue_asks_for_one_world_by_one_label() {
        for (labels, expected) in [
            (&[][..], Some(WorldSelection::Here)),
            (&["backend", "worlds:x"], Some(WorldSelection::Here)),
            (
                &["backend", "world:docs"],
                Some(WorldSelection::There("docs")),
            ),
            (
                &["world:docs", " world: docs "],
                Some(WorldSelection::There("docs")),
            ),
            (&["world:"], None),
            (&["world:a", "world:b"], None),
            (&["world:a", "world:"], None),
        ] {
            let wish = WorldSelection::of(labels.iter().copied());
            match expected {
                Some(expected) => assert_eq!(wish, expected, "{labels:?}"),
                None => assert!(
                    matches!(wish, WorldSelection::Unclear { .. }),
                    "{labels:?}: {wish:?}"
                ),
            }
        }
        let WorldSelection::Unclear { asked, detail } = WorldSelection::of(["world:b", "world:a"])
        else {
            panic!("several labels must not select a world");
        };
        assert_eq!(asked, "world:a, world:b");
        assert!(detail.ends_with(&asked), "{detail}");
    }
}
