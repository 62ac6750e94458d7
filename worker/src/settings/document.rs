//! The text of `harness.toml` made into its tables, with file and line where
//! something does not fit.

use super::file::ConfigError;
use super::keys::{HarnessToml, Table};
use super::program::Places;
use super::values::BackoffValue;
use premath_evidence::Agent;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error, ValueDeserializer};

/// Keys that are no longer supported, and why.
const REMOVED: &[(&str, &str, &str)] = &[(
    "landing",
    "strategy",
    "work lands as one commit on the target's tip; delete the key",
)];

/// The content of a configuration file.
#[derive(Debug, Default)]
pub(super) struct ConfigDocument {
    /// The tables of the file.
    pub(super) toml: HarnessToml,
    /// Command lines in place of the ready ones, as `codex_cmd` names them.
    pub(super) commands: BTreeMap<Agent, String>,
    /// What the classes of `[backoff]` wait.
    pub(super) waits: BTreeMap<String, BackoffValue>,
    /// The place of each key in the file.
    pub(super) places: Places,
}

impl ConfigDocument {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Line`].
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let source = Source { text, path };
        let root = DeTable::parse(text).map_err(|error| source.malformed(&error))?;
        let mut document = Self::default();
        let root_span = root.span();
        let mut tables = DeTable::new();
        for (name, mut value) in root.into_inner() {
            document.take(&source, &name, &mut value)?;
            tables.insert(name, value);
        }
        let from = Deserializer::from(Spanned::new(root_span, tables));
        document.toml = serde_path_to_error::deserialize(from).map_err(|error| {
            let keys = error.path().iter();
            let mut keys = keys.filter_map(|segment| match segment {
                Segment::Map { key } => Some(key.clone()),
                _ => None,
            });
            let key = keys.nth(1).unwrap_or_default();
            source.wrong(&key, error.inner())
        })?;
        Ok(document)
    }

    /// Checks the keys of a table, and takes those out whose names are not
    /// fixed.
    fn take(
        &mut self,
        source: &Source<'_>,
        name: &Spanned<toml::de::DeString<'_>>,
        value: &mut Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let all = Table::all().iter();
        let at = name.span().start;
        let name = name.get_ref().as_ref();
        let table = all.clone().find(|table| table.name == name);
        let table = table.ok_or_else(|| source.unknown(at, name, all.map(|table| table.name)))?;
        let found = value.get_ref().type_str();
        let start = value.span().start;
        let DeValue::Table(keys) = value.get_mut() else {
            let detail = format!("`{name}`: invalid type: {found}, expected a table");
            return Err(source.line(start, detail));
        };
        let mut fixed = DeTable::new();
        for (key, value) in std::mem::take(keys) {
            let at = key.span().start;
            let word = key.get_ref().as_ref();
            self.places
                .insert(format!("{name}.{word}"), source.place(at));
            if let Some((.., why)) = REMOVED.iter().find(|(t, k, _)| (*t, *k) == (name, word)) {
                let detail = format!("`{word}` is no longer supported: {why}");
                return Err(source.line(at, detail));
            }
            let is_fixed = name == "worlds" || table.names().any(|known| known == word);
            let agent = word.strip_suffix("_cmd").and_then(Agent::named);
            match (name, agent) {
                _ if is_fixed => {
                    fixed.insert(key, value);
                }
                ("agent", Some(agent)) => {
                    self.commands.insert(agent, source.read(word, value)?);
                }
                ("backoff", _) => {
                    self.waits
                        .insert(word.to_owned(), source.read(word, value)?);
                }
                _ => return Err(source.unknown(at, word, table.names())),
            }
        }
        *keys = fixed;
        Ok(())
    }
}

/// One file, for errors that name it.
struct Source<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Source<'_> {
    fn line(&self, offset: usize, detail: String) -> ConfigError {
        let (path, line) = self.place(offset);
        ConfigError::Line { path, line, detail }
    }

    /// Returns the file and the line, from 1, of an offset.
    fn place(&self, offset: usize) -> (PathBuf, usize) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        (self.path.to_path_buf(), line)
    }

    /// Returns the error of a text that is not TOML. A duplicate key is named:
    /// its position is that of the second one.
    fn malformed(&self, error: &Error) -> ConfigError {
        let key = error.span().and_then(|span| self.text.get(span));
        match key {
            Some(key) if error.message() == "duplicate key" => {
                self.at(error, &format!("duplicate key `{key}`"))
            }
            _ => self.at(error, error.message()),
        }
    }

    fn at(&self, error: &Error, detail: &str) -> ConfigError {
        let offset = error.span().map_or(0, |span| span.start);
        self.line(offset, detail.to_owned())
    }

    fn wrong(&self, key: &str, error: &Error) -> ConfigError {
        self.at(error, &format!("`{key}`: {}", error.message()))
    }

    fn read<T: DeserializeOwned>(
        &self,
        key: &str,
        value: Spanned<DeValue<'_>>,
    ) -> Result<T, ConfigError> {
        let read = T::deserialize(ValueDeserializer::from(value));
        read.map_err(|error| self.wrong(key, &error))
    }

    fn unknown(
        &self,
        offset: usize,
        key: &str,
        known: impl Iterator<Item = &'static str> + Clone,
    ) -> ConfigError {
        let near = known
            .clone()
            .map(|name| (strsim::damerau_levenshtein(key, name), name))
            .min()
            .filter(|(distance, _)| *distance <= 3);
        if let Some((_, near)) = near {
            let (path, line) = self.place(offset);
            let key = key.to_owned();
            return ConfigError::Unknown {
                path,
                line,
                key,
                near,
            };
        }
        let known = known.collect::<Vec<_>>().join(", ");
        self.line(
            offset,
            format!("unknown key `{key}`; expected one of {known}"),
        )
    }
}
