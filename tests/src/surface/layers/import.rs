//! Reads which modules of its own crate a source file imports.

use super::super::token::{Token, tokens};

/// A path that a file names, from the root of its crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The segments, the last one is often an item.
    pub path: Vec<String>,
    /// The line, from 1.
    pub line: usize,
}

/// Returns the paths that begin with `crate` or `super` in a file of the
/// module `module`, code of tests left out.
pub(super) fn imports(source: &str, module: &[String]) -> Vec<Import> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut place = Place::of(module);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if is_test_attribute(tokens.get(at..).unwrap_or_default()) {
            at = end_of_item(&tokens, at);
            continue;
        }
        place.pass(&tokens, at);
        let is_first = at == 0 || tokens.get(at - 1).is_none_or(|token| token.text != "::");
        let base = match token.text {
            "crate" if is_first => Some((Vec::new(), at + 1)),
            "super" if is_first => place.above(&tokens, at),
            _ => None,
        };
        if let Some((base, next)) = base
            && text(&tokens, next) == "::"
        {
            for tail in expand(&tokens, next + 1).0 {
                let path = base.iter().cloned().chain(tail).collect();
                let line = token.line;
                found.push(Import { path, line });
            }
        }
        at += 1;
    }
    found
}

/// Returns the names that a module's root file exports from its children, with
/// the child of each.
pub(super) fn exports(source: &str, is_child: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.text != "use" {
            continue;
        }
        for path in expand(&tokens, at + 1).0 {
            if let [child, .., name] = path.as_slice()
                && is_child(child)
            {
                found.push((name.clone(), child.clone()));
            }
        }
    }
    found
}

fn text<'s>(tokens: &[Token<'s>], at: usize) -> &'s str {
    tokens.get(at).map_or("", |token| token.text)
}

/// The module that the tokens belong to: the file's, and modules within it.
struct Place {
    module: Vec<String>,
    inner: Vec<(String, usize)>,
    depth: usize,
}

impl Place {
    fn of(module: &[String]) -> Self {
        Self {
            module: module.to_vec(),
            inner: Vec::new(),
            depth: 0,
        }
    }

    fn pass(&mut self, tokens: &[Token<'_>], at: usize) {
        match text(tokens, at) {
            "mod" if text(tokens, at + 2) == "{" => {
                let name = text(tokens, at + 1).to_owned();
                self.inner.push((name, self.depth));
            }
            "{" => self.depth += 1,
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                self.inner.retain(|(_, depth)| *depth < self.depth);
            }
            _ => {}
        }
    }

    /// Returns the module that a path of `super`s begins at, and the index of
    /// the token after them.
    fn above(&self, tokens: &[Token<'_>], at: usize) -> Option<(Vec<String>, usize)> {
        let mut module = self.module.clone();
        module.extend(self.inner.iter().map(|(name, _)| name.clone()));
        let mut next = at;
        loop {
            module.pop()?;
            match (text(tokens, next + 1), text(tokens, next + 2)) {
                ("::", "super") => next += 2,
                _ => return Some((module, next + 1)),
            }
        }
    }
}

/// Returns the paths of a use tree that begins at a token, and the index of
/// the token after it.
fn expand(tokens: &[Token<'_>], at: usize) -> (Vec<Vec<String>>, usize) {
    let first = text(tokens, at);
    if first == "{" {
        return group(tokens, at + 1);
    }
    let is_word = first.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !is_word && first != "*" {
        return (vec![Vec::new()], at);
    }
    if text(tokens, at + 1) == "::" {
        let (tails, end) = expand(tokens, at + 2);
        let joined = |tail: Vec<String>| [vec![first.to_owned()], tail].concat();
        return (tails.into_iter().map(joined).collect(), end);
    }
    (vec![vec![first.to_owned()]], at + 1)
}

fn group(tokens: &[Token<'_>], mut at: usize) -> (Vec<Vec<String>>, usize) {
    let mut paths = Vec::new();
    loop {
        match text(tokens, at) {
            "}" | "" => return (paths, at + 1),
            "," => at += 1,
            // The new name of an import does not determine its module.
            "as" => at += 2,
            _ => {
                let (found, end) = expand(tokens, at);
                paths.extend(found);
                at = end.max(at + 1);
            }
        }
    }
}

fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    let words = ["#", "[", "cfg", "(", "test", ")", "]"];
    let texts = tokens.iter().map(|token| token.text);
    texts.take(words.len()).eq(words)
}

/// Returns the index of the token after the item that an attribute is on.
fn end_of_item(tokens: &[Token<'_>], attribute: usize) -> usize {
    let mut depth = 0_usize;
    let mut is_use = false;
    for (at, token) in tokens.iter().enumerate().skip(attribute) {
        match token.text {
            "use" if depth == 0 => is_use = true,
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" && !is_use {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str, module: &[&str]) -> Vec<String> {
        let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
        let found = imports(source, &module);
        found.iter().map(|found| found.path.join("::")).collect()
    }

    #[test]
    fn groups_are_spread_out() {
        let source = "use crate::a::{self, b::{c, d as e}, f};\nuse std::crate_::x;";
        assert_eq!(
            paths(source, &["m"]),
            ["a::self", "a::b::c", "a::b::d", "a::f"]
        );
    }

    #[test]
    fn paths_upward_begin_at_the_module_of_the_file() {
        let source = "use super::x::Y; mod inner { use super::super::z; } use super::super::w;";
        assert_eq!(
            paths(source, &["a", "b", "c"]),
            ["a::b::x::Y", "a::b::z", "a::w"]
        );
    }

    #[test]
    fn a_path_within_an_expression_counts() {
        assert_eq!(
            paths("fn f() { crate::a::b::<T>(); } pub(crate) fn g() {}", &[]),
            ["a::b"]
        );
    }

    #[test]
    fn code_of_tests_is_left_out() {
        let source = "#[cfg(test)]\nuse crate::a::{b};\n#[cfg(test)]\n#[x(y)]\nmod tests { use crate::c; }\nuse crate::d;";
        assert_eq!(paths(source, &["m"]), ["d"]);
    }

    #[test]
    fn an_export_names_its_module() {
        let source = "pub use row::{Issue, Status as State};\nuse std::fmt::Debug;";
        let found = exports(source, |name| name == "row");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.contains(&("Issue".to_owned(), "row".to_owned())));
    }
}
