//! `layers-check`: a crate's modules import each other in one direction.
//!
//! Three rules hold. A crate with declared layers has no other top-level modules,
//! and a layer imports only lower ones. In every checked scope no two modules
//! import each other, directly or by others between them. What only Linux has is
//! used behind one interface. Code of tests is left out: a test may use whatever
//! it needs.

mod graph;
mod import;
mod linux;

use super::{Fault, files, text_of};
use graph::{Graph, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crates, by the folder of their source.
pub const CRATES: [&str; 10] = [
    "coordinator/src",
    "shared/cli/src",
    "shared/conformance/src",
    "shared/evidence/src",
    "shared/kernel/src",
    "shared/memory/src",
    "shared/platform/src",
    "shared/view/src",
    "shared/worktree/src",
    "worker/src",
];

/// The crate whose top-level modules are layers.
const LAYERED: &str = "shared/kernel/src";

/// Its layers, lowest first.
pub const LAYERS: [&str; 7] = [
    "json",
    "failure",
    "issue",
    "authority",
    "turn",
    "policy",
    "record",
];

/// Checks a checkout.
pub fn faults(root: &Path) -> Vec<Fault> {
    let names = files(root);
    let mut faults = Vec::new();
    for folder in CRATES {
        let scope = Scope::read(root, &names, folder, &[]);
        cycles(&scope, &mut faults);
    }
    let top = Scope::read(root, &names, LAYERED, &[]);
    upward(&top, &mut faults);
    for layer in LAYERS {
        let scope = Scope::read(root, &names, LAYERED, &[layer]);
        cycles(&scope, &mut faults);
    }
    linux::faults(root, &mut faults);
    faults.sort();
    faults
}

/// The modules of one parent and their imports of each other.
struct Scope {
    /// The folder or file of the parent, from the root.
    parent: String,
    modules: BTreeSet<String>,
    graph: Graph,
}

impl Scope {
    fn read(root: &Path, names: &[String], folder: &str, parent: &[&str]) -> Self {
        let prefix = format!("{folder}/");
        let sources: Vec<(&String, Vec<String>)> = names
            .iter()
            .filter_map(|name| Some((name, module_of(name.strip_prefix(&prefix)?)?)))
            .filter(|(_, module)| starts(module, parent))
            .collect();
        let depth = parent.len();
        let modules: BTreeSet<String> = sources
            .iter()
            .filter_map(|(_, module)| module.get(depth).cloned())
            .collect();
        let mut exported = BTreeMap::new();
        for (name, _) in sources.iter().filter(|(_, module)| module.len() == depth) {
            let is_child = |child: &str| modules.contains(child);
            exported.extend(import::exports(&text_of(root, name), is_child));
        }
        let mut graph = Graph::default();
        for (name, module) in &sources {
            let Some(from) = module.get(depth) else {
                continue;
            };
            for import in import::imports(&text_of(root, name), module) {
                let inside = starts(&import.path, parent);
                let Some(target) = import.path.get(depth).filter(|_| inside) else {
                    continue;
                };
                let to = match modules.contains(target) {
                    true => Some(target),
                    false => exported.get(target),
                };
                if let Some(to) = to {
                    let file = (*name).clone();
                    let line = import.line;
                    graph.insert(from, to, Site { file, line });
                }
            }
        }
        let parent = [&[folder], parent].concat().join("/");
        Self {
            parent,
            modules,
            graph,
        }
    }
}

fn starts(module: &[String], parent: &[&str]) -> bool {
    module.len() >= parent.len() && module.iter().zip(parent).all(|(a, b)| a == b)
}

/// Returns the module of a source file; `None` for anything else and for tests.
fn module_of(name: &str) -> Option<Vec<String>> {
    let stem = name.strip_suffix(".rs")?;
    let mut module: Vec<String> = stem.split('/').map(str::to_owned).collect();
    if matches!(
        module.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        module.pop();
    }
    let is_test = module.iter().any(|part| part == "tests");
    (!is_test).then_some(module)
}

fn cycles(scope: &Scope, faults: &mut Vec<Fault>) {
    for cycle in scope.graph.cycles() {
        let within = |name: &str| cycle.contains(name);
        let edges: Vec<String> = scope
            .graph
            .edges()
            .filter(|(from, to, _)| within(from) && within(to))
            .map(|(from, to, site)| format!("{from} -> {to} ({}:{})", site.file, site.line))
            .collect();
        let detail = format!("modules import each other: {}", edges.join(", "));
        faults.push(Fault::at(&scope.parent, 0, detail));
    }
}

fn upward(scope: &Scope, faults: &mut Vec<Fault>) {
    let rank = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    for module in &scope.modules {
        if rank(module).is_none() {
            let detail = format!("the module `{module}` belongs to no declared layer");
            faults.push(Fault::at(&scope.parent, 0, detail));
        }
    }
    for (from, to, site) in scope.graph.edges() {
        if rank(to) > rank(from) {
            let detail = format!("`{from}` imports `{to}`, which is a higher layer");
            faults.push(Fault::at(&site.file, site.line, detail));
        }
    }
}
