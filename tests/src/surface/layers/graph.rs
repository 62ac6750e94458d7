//! The graph of imports between modules.

use std::collections::{BTreeMap, BTreeSet};

/// Where an import is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    /// The file, from the root of the checkout.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

/// The imports between sibling modules; of each the first site.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph(BTreeMap<String, BTreeMap<String, Site>>);

impl Graph {
    /// Adds an import; one of a module by itself is none.
    pub(super) fn insert(&mut self, from: &str, to: &str, site: Site) {
        if from != to {
            let targets = self.0.entry(from.to_owned()).or_default();
            targets.entry(to.to_owned()).or_insert(site);
        }
    }

    /// Returns every import with its site.
    pub(super) fn edges(&self) -> impl Iterator<Item = (&str, &str, &Site)> {
        self.0.iter().flat_map(|(from, targets)| {
            let target = move |(to, site)| (from.as_str(), String::as_str(to), site);
            targets.iter().map(target)
        })
    }

    /// Returns the sets of modules that import each other, directly or by
    /// others between them.
    pub(super) fn cycles(&self) -> BTreeSet<BTreeSet<&str>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> = self
            .0
            .keys()
            .map(|from| (from.as_str(), self.reached_from(from)))
            .collect();
        let mutual = |from: &str, to: &str| {
            let reaches = |a: &str, b: &str| reached.get(a).is_some_and(|to| to.contains(b));
            reaches(from, to) && reaches(to, from)
        };
        let names: Vec<&str> = reached.keys().copied().collect();
        let with = |from: &&str| -> BTreeSet<&str> {
            let others = names.iter().copied();
            others.filter(|to| mutual(from, to)).collect()
        };
        let sets = names.iter().map(with);
        sets.filter(|set| set.len() > 1).collect()
    }

    fn reached_from(&self, from: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(name) = waiting.pop() {
            for to in self.0.get(name).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(to.as_str()) {
                    waiting.push(to);
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modules_that_reach_each_other_form_a_cycle() {
        let mut graph = Graph::default();
        for (from, to) in [
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("c", "d"),
            ("d", "d"),
            ("e", "f"),
            ("f", "e"),
        ] {
            let site = Site {
                file: "x".into(),
                line: 1,
            };
            graph.insert(from, to, site);
        }
        let found: Vec<Vec<&str>> = graph
            .cycles()
            .into_iter()
            .map(|set| set.into_iter().collect())
            .collect();
        assert_eq!(found, [vec!["a", "b", "c"], vec!["e", "f"]]);
    }
}
