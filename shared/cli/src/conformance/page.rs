//! The documentation page of the slices, `docs/reference/slices.md`.

use premath_conformance::{SliceRow, SliceVector};
use premath_kernel::turn::{RuleNote, Stage};
use std::fmt::Write;

/// The text before the tables.
const HEAD: &str = "\
# Slices of the typestate

<!-- Written by `mise run generate` from the rules of the gate and the conformance vectors. -->

TOOL-CALLING-HARNESS-TYPESTATE 8 suggests to build the typestate in eighteen slices. This page \
lists for each slice the rules of the gate and the vectors that test them. A turn that breaks \
a rule has the rule's class; a derived class follows from others. The rule `tool::result_missing` \
is the function `result_missing` in `shared/kernel/src/turn/gate/tool.rs`. A rule keeps a turn \
from being joined, or from changing an issue. \
Checks that need the running step are made at admission and have no vectors. The vector `golden/x` is the file \
`tests/conformance/harness-typestate/golden/x.json`.

`premath conformance slices` counts them, and `premath conformance run` judges the gate by every \
vector.

| slice | about | rules | classes | vectors |
|---|---|---|---|---|
";

/// Returns the page.
pub(super) fn page(rows: &[SliceRow]) -> String {
    let mut text = HEAD.to_owned();
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            row.slice.number,
            cell(row.slice.title),
            row.rules.len(),
            row.classes().len(),
            row.vectors.len()
        );
    }
    text.extend(rows.iter().map(section));
    text
}

fn section(row: &SliceRow) -> String {
    let slice = row.slice;
    let mut text = format!("\n## {}. {}\n\n", slice.number, slice.title);
    if !slice.places.is_empty() {
        let places: Vec<String> = slice.places.iter().map(|p| format!("`{p}`")).collect();
        let _ = write!(text, "Beside rules: {}.\n\n", places.join(", "));
    }
    text.push_str("| rule | class | keeps from | requires |\n|---|---|---|---|\n");
    text.extend(row.rules.iter().map(rule));
    if row.vectors.is_empty() {
        text.push_str("\nNo vector yet.\n");
    } else {
        text.push_str("\n| vector | root class | says |\n|---|---|---|\n");
        text.extend(row.vectors.iter().map(vector));
    }
    text
}

fn rule(note: &RuleNote) -> String {
    let derived = if note.derived { ", derived" } else { "" };
    format!(
        "| `{}` | `{}`{derived} | {} | {} |\n",
        note.rule,
        note.class,
        stage(note.stage),
        cell(note.asks)
    )
}

fn vector(vector: &SliceVector) -> String {
    let root = vector
        .root
        .map_or_else(String::new, |root| format!("`{root}`"));
    format!(
        "| `{}` | {root} | {} |\n",
        cell(&vector.id),
        cell(&vector.says)
    )
}

const fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Join => "the join",
        Stage::Mutation => "a change",
        Stage::AnyStep => "a change, no step known",
        Stage::ThisStep => "a change, of this step",
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::super::source::SuiteSource;
    use super::*;
    use premath_conformance::{SLICES, run, slices};
    use std::path::Path;

    /// The root of the repository.
    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    fn current() -> String {
        page(&slices(&run(SuiteSource::embedded().files())))
    }

    #[test]
    fn the_shipped_page_is_current() {
        let path = Path::new(ROOT).join("docs/reference/slices.md");
        let shipped = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            shipped == current(),
            "docs/reference/slices.md is not what rules and vectors give; \
             `mise run generate` writes it"
        );
    }

    #[test]
    fn the_page_has_a_section_for_every_slice() {
        let page = current();
        let heads = page.lines().filter(|line| line.starts_with("## ")).count();
        assert_eq!(heads, SLICES.len());
    }

    #[test]
    fn the_code_that_the_page_names_is_there() {
        let rows = slices(&run(SuiteSource::embedded().files()));
        let modules = rows.iter().flat_map(|row| &row.rules).map(|note| {
            let module = note.rule.split("::").next().unwrap_or_default();
            format!("shared/kernel/src/turn/gate/{module}.rs")
        });
        let places = SLICES.iter().flat_map(|slice| slice.places);
        let files = places.filter(|place| !place.starts_with("premath "));
        for file in modules.chain(files.map(|file| (*file).to_owned())) {
            assert!(Path::new(ROOT).join(&file).is_file(), "{file}");
        }
    }
}
