//! The links of pages to files and to sections of them.

use super::blocks;
use crate::surface::{Fault, text_of};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Returns the anchors of a page: one a heading, as forges and mdBook make them.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(title) = line.strip_prefix('#') else {
            continue;
        };
        let anchor = anchor_of(title.trim_start_matches('#').trim());
        let before = counted.entry(anchor.clone()).or_default();
        found.insert(match *before {
            0 => anchor,
            ref number => format!("{anchor}-{number}"),
        });
        *before += 1;
    }
    found
}

fn anchor_of(title: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    title.chars().filter_map(kept).collect()
}

/// Checks the links of pages; those to other sites are not followed.
pub fn broken_links(root: &Path, pages: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for page in pages {
        let text = text_of(root, page);
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        for (line, target) in links(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = match path {
                "" => Some(PathBuf::from(page)),
                path => joined(folder, path),
            };
            // The site has the pages alone.
            let outside = |file: &PathBuf| page.starts_with("docs/") && !file.starts_with("docs");
            if file.as_ref().is_some_and(outside) {
                let detail = format!("`{path}` is not a part of the site");
                faults.push(Fault::at(page, line, detail));
                continue;
            }
            let there = file.as_ref().is_some_and(|file| root.join(file).exists());
            if !there {
                faults.push(Fault::at(page, line, format!("there is no `{path}`")));
                continue;
            }
            let to = text_of(root, &file.unwrap_or_default().to_string_lossy());
            if !anchor.is_empty() && !anchors(&to).contains(anchor) {
                let detail = format!("`{target}` names no section");
                faults.push(Fault::at(page, line, detail));
            }
        }
    }
    faults
}

/// Joins a relative path to a folder of the checkout.
fn joined(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut joined = folder.to_path_buf();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir if joined.pop() => {}
            Component::ParentDir => return None,
            Component::CurDir => {}
            part => joined.push(part),
        }
    }
    Some(joined)
}

/// Returns the lines of a page outside of its blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let inside: BTreeSet<usize> = blocks(text)
        .iter()
        .flat_map(|block| block.line..=block.line + block.lines.len() + 1)
        .collect();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(move |(number, _)| !inside.contains(number))
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // What is between backticks is not a link, but a link's text may be.
        for (at, _) in line.match_indices("](") {
            let code = line[..at].matches('`').count() % 2 == 1;
            let target = line[at + 2..].split(')').next().unwrap_or_default();
            if !code {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn headings_have_anchors() {
        let found = anchors("# One `two`, three\n## Again\n```sh\n# no\n```\n## Again\n");
        let wanted = ["again", "again-1", "one-two-three"].map(str::to_owned);
        assert_eq!(Vec::from_iter(found), wanted);
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        page(root, "docs/b/two.md", "# Two\n");
        let links = "[a](b/two.md#two) [b](#one) [c](https://x/y) `[d](no.md)`\n";
        page(root, "docs/one.md", &format!("# One\n{links}"));
        let names = ["docs/one.md".to_owned()];
        assert_eq!(broken_links(root, &names), []);
        page(root, "README.md", "# R\n");
        for bad in [
            "../README.md",
            "b/none.md",
            "b/two.md#three",
            "#two",
            "../../../x",
        ] {
            page(root, "docs/one.md", &format!("# One\n[a]({bad})\n"));
            assert_eq!(broken_links(root, &names).len(), 1, "{bad}");
        }
    }
}
