//! The blocks of a turn: structs whose fields are written once, and are read,
//! brought into their normal form and written by that.
//!
//! In normal form a text is trimmed, and absent where nothing is left; rows are
//! sorted by their key and appear once; facts of which nothing is there are
//! none.

use super::error::EvidenceError;
use crate::json::path::Path;
use crate::json::read::ALIKE;
use crate::json::strict::excerpt;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A value that has a normal form.
pub(super) trait Normal: Sized {
    /// Returns the value in normal form; `None` where nothing is left of it.
    ///
    /// # Errors
    ///
    /// A blank text that is required, names that are alike in normal form, and
    /// rows of one key that disagree; with their path.
    fn normal(self, at: &Path<'_>) -> Result<Option<Self>, EvidenceError>;
}

/// A row of a list, with what makes it one.
pub(super) trait Row: PartialEq {
    /// The field that is the key.
    const KEY: &'static str;

    /// Compares the keys of two rows.
    fn order(&self, other: &Self) -> Ordering;

    /// Returns the key, as it is shown to a person.
    fn named(&self) -> String;
}

/// Defines a struct of a turn, and, with `by`, the key of a row.
macro_rules! block {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(by $key:ident)? {
            $( $(#[$field_meta:meta])* pub $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Debug, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize,
            ::schemars::JsonSchema,
        )]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl $crate::turn::block::Normal for $name {
            fn normal(
                self,
                at: &$crate::json::path::Path<'_>,
            ) -> Result<Option<Self>, $crate::turn::EvidenceError> {
                Ok(Some(Self {
                    $( $field: $crate::turn::block::field(
                        self.$field,
                        &at.member(stringify!($field)),
                    )?, )*
                }))
            }
        }

        $( $crate::turn::block::row!($name by $key); )?
    };
}

/// Gives the rows of a list their key.
macro_rules! row {
    ($name:ident by $key:ident) => {
        impl $crate::turn::block::Row for $name {
            const KEY: &'static str = stringify!($key);

            fn order(&self, other: &Self) -> std::cmp::Ordering {
                self.$key.cmp(&other.$key)
            }

            fn named(&self) -> String {
                $crate::turn::block::RowKey::shown(&self.$key)
            }
        }
    };
}

/// Returns a field that must be there in normal form.
pub(super) fn field<T: Normal>(value: T, at: &Path<'_>) -> Result<T, EvidenceError> {
    value
        .normal(at)?
        .ok_or_else(|| at.error("must be a non-empty string"))
}

/// A key of rows.
pub(super) trait RowKey {
    /// Returns the key, as it is shown to a person.
    fn shown(&self) -> String;
}

impl RowKey for String {
    fn shown(&self) -> String {
        excerpt(self)
    }
}

impl RowKey for u64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

/// Types whose every value is in normal form.
macro_rules! always_normal {
    ($($type:ty),*) => { $(
        impl $crate::turn::block::Normal for $type {
            fn normal(
                self,
                _: &$crate::json::path::Path<'_>,
            ) -> Result<Option<Self>, $crate::turn::EvidenceError> {
                Ok(Some(self))
            }
        }
    )* };
}

always_normal!(bool, u64, Number, Value);

pub(super) use {always_normal, block, row};

impl Normal for String {
    fn normal(self, _: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        let ends = [self.as_bytes().first(), self.as_bytes().last()];
        // Most texts have nothing to trim, and stay what they are.
        if ends.iter().all(|end| end.is_some_and(u8::is_ascii_graphic)) {
            return Ok(Some(self));
        }
        let text = self.trim();
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }
}

impl<T: Normal> Normal for Option<T> {
    fn normal(self, at: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        match self {
            None => Ok(Some(None)),
            Some(value) => value.normal(at).map(Some),
        }
    }
}

/// Facts that are boxed: those of which nothing is there are none.
impl<T: Normal + Default + PartialEq> Normal for Box<T> {
    fn normal(self, at: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        let facts = (*self).normal(at)?.filter(|facts| *facts != T::default());
        Ok(facts.map(Self::new))
    }
}

impl<T: Normal + Ord> Normal for BTreeSet<T> {
    fn normal(self, at: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        self.into_iter()
            .filter_map(|item| item.normal(at).transpose())
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

impl<K: Normal + Ord + AsRef<str>, V: Normal> Normal for BTreeMap<K, V> {
    fn normal(self, at: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        let mut entries = Self::new();
        for (key, value) in self {
            let name = key.as_ref().to_owned();
            let at = at.field(&name);
            let key = key.normal(&at)?;
            let key = key.ok_or_else(|| at.error("must be a non-empty name"))?;
            let Some(value) = value.normal(&at)? else {
                continue;
            };
            if entries.insert(key, value).is_some() {
                return Err(at.error(ALIKE));
            }
        }
        Ok(Some(entries))
    }
}

impl<T: Row + Normal> Normal for Vec<T> {
    fn normal(self, at: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        rows(self, at, field).map(Some)
    }
}

/// Normalises rows, sorts them by key and collapses those that agree.
///
/// # Errors
///
/// The first row that has the key of another one and differs from it.
pub(super) fn rows<R, N: Row>(
    rows: Vec<R>,
    at: &Path<'_>,
    normal: impl Fn(R, &Path<'_>) -> Result<N, EvidenceError>,
) -> Result<Vec<N>, EvidenceError> {
    // `collect` reuses the allocation if the row type does not change.
    let found: Vec<N> = rows
        .into_iter()
        .enumerate()
        .map(|(index, row)| normal(row, &at.row(index)))
        .collect::<Result<_, _>>()?;
    if found.is_sorted_by(|a, b| a.order(b).is_lt()) {
        return Ok(found);
    }
    let mut sorted: Vec<(usize, N)> = found.into_iter().enumerate().collect();
    sorted.sort_by(|(_, a), (_, b)| a.order(b));
    let conflict = sorted
        .chunk_by(|(_, a), (_, b)| a.order(b).is_eq())
        .filter_map(|rows| rows.iter().find(|(_, row)| *row != rows[0].1))
        .min_by_key(|(index, _)| *index);
    if let Some((index, row)) = conflict {
        let expected = format!(
            "{} repeats an earlier row with different content",
            row.named()
        );
        return Err(at.row(*index).member(N::KEY).error(expected));
    }
    sorted.dedup_by(|(_, a), (_, b)| a.order(b).is_eq());
    Ok(sorted.into_iter().map(|(_, row)| row).collect())
}
