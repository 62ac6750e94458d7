//! The page of documents that have a JSON Schema.

use crate::surface::cell;
use serde::Deserialize;
use std::fmt::Write;

const HEAD: &str = "\
# Schemas

<!-- Written by `mise run generate` from `premath schema`. -->

Every document that the harness reads or writes has a JSON Schema. `premath schema` lists them, \
`premath schema KIND` prints one, and `premath schema --dir DIR` writes all of them. The folder \
`shared/schemas` has them as files, each as `KIND.schema.json`.

| kind | describes |
|---|---|
";

/// One kind of document.
#[derive(Deserialize)]
pub(super) struct DocumentKind {
    pub(super) kind: String,
    pub(super) file: String,
    title: String,
}

#[derive(Deserialize)]
struct Listed {
    items: Vec<DocumentKind>,
}

/// Reads the answer of `premath schema --json`.
pub(super) fn kinds(answer: &str) -> Vec<DocumentKind> {
    let listed: Listed = serde_json::from_str(answer).expect("the list of schemas is JSON");
    listed.items
}

/// Returns the page.
pub(super) fn page(kinds: &[DocumentKind]) -> String {
    let mut page = HEAD.to_owned();
    for kind in kinds {
        let _ = writeln!(page, "| `{}` | {} |", kind.kind, cell(&kind.title));
    }
    page
}
