//! Whether the lines of a trajectory are the ones that were written: the hash
//! chain, computed again from the lines alone.

use super::link::{Chain, ChainHead, ChainedLine, chained};
use std::collections::BTreeMap;
use std::fmt;

/// How a line breaks the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakKind {
    /// The row's value is not the one that its text and what comes before it
    /// give.
    Altered,
    /// The row continues from an earlier one, and these lines between them are
    /// not part of the chain.
    Inserted {
        /// The number of the first line.
        first: u64,
        /// The number of the last line.
        last: u64,
    },
    /// The row continues from one that comes later, or from itself.
    Moved {
        /// The line that it continues from.
        after: u64,
    },
    /// The row begins a chain, and another one begins before it.
    BeginsAgain,
    /// Another row has the same value.
    Repeated {
        /// The line of that row, from 1.
        first: u64,
    },
    /// The row is not written as the harness writes rows.
    Rewritten,
}

/// A line where the chain breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainBreak {
    /// The line, from 1.
    pub line: u64,
    /// The kind of the break.
    pub kind: BreakKind,
    /// The value that the row must have.
    pub expected: ChainHead,
    /// The value that it has.
    pub found: ChainHead,
}

impl fmt::Display for BreakKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Altered => {
                f.write_str("the row was altered, or a line before it was altered or removed")
            }
            Self::Inserted { first, last } if first == last => {
                write!(f, "line {first} was inserted")
            }
            Self::Inserted { first, last } => write!(f, "lines {first} to {last} were inserted"),
            Self::Moved { after } => {
                write!(f, "the row is out of order: it continues from line {after}")
            }
            Self::BeginsAgain => f.write_str("the chain begins a second time"),
            Self::Repeated { first } => write!(f, "the row repeats line {first}"),
            Self::Rewritten => f.write_str("the row is not in the form that it was written in"),
        }
    }
}

/// What the lines of a trajectory are, by their chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainReport {
    /// The value of each chained row, by its line.
    pub values: BTreeMap<u64, ChainHead>,
    /// The lines that carry no value, and which a later row covers.
    pub covered: Vec<u64>,
    /// The lines that carry no value, and which no row covers yet.
    pub uncovered: Vec<u64>,
    /// Where the chain breaks, in the order of the lines.
    pub breaks: Vec<ChainBreak>,
}

impl ChainReport {
    /// Returns the value that the chain ends with.
    pub fn head(&self) -> Option<ChainHead> {
        self.values.last_key_value().map(|(_, value)| *value)
    }

    /// Returns the line of a value; the first where several have it.
    pub fn line_of(&self, value: ChainHead) -> Option<u64> {
        let mut lines = self.values.iter();
        lines.find(|(_, found)| **found == value).map(|(l, _)| *l)
    }
}

/// Computes the chain of a file's lines again. After a break it continues from
/// the value that is found, so that one change is one break.
pub fn check_chain<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> ChainReport {
    let lines: Vec<&[u8]> = lines.into_iter().collect();
    let rows: Vec<Option<ChainedLine>> = lines.iter().map(|line| chained(line)).collect();
    let mut check = Check {
        rows: &rows,
        report: ChainReport::default(),
        chain: Chain::default(),
        seen: BTreeMap::new(),
    };
    for (number, (line, row)) in (1..).zip(lines.iter().zip(&rows)) {
        match row {
            Some(row) => check.row(number, row),
            None if line.trim_ascii().is_empty() => {}
            None => {
                check.chain.absorb(line);
                check.report.uncovered.push(number);
            }
        }
    }
    check.report
}

struct Check<'a> {
    rows: &'a [Option<ChainedLine>],
    report: ChainReport,
    chain: Chain,
    seen: BTreeMap<ChainHead, u64>,
}

impl Check<'_> {
    fn row(&mut self, number: u64, row: &ChainedLine) {
        let expected = self.chain.value_of(&row.body);
        let repeated = self.seen.get(&row.value).copied();
        let kind = if let Some(first) = repeated {
            Some(BreakKind::Repeated { first })
        } else if expected != row.value {
            Some(self.kind_of(number, row))
        } else {
            (!row.canonical).then_some(BreakKind::Rewritten)
        };
        if let Some(kind) = kind {
            self.report.breaks.push(ChainBreak {
                line: number,
                kind,
                expected,
                found: row.value,
            });
        }
        let covered = std::mem::take(&mut self.report.uncovered);
        self.report.covered.extend(covered);
        self.seen.entry(row.value).or_insert(number);
        self.report.values.insert(number, row.value);
        self.chain.continue_from(row.value);
    }

    /// Finds what a row that does not continue from the one before it continues
    /// from.
    fn kind_of(&self, number: u64, row: &ChainedLine) -> BreakKind {
        let continues_from = |head| Chain::at(head).value_of(&row.body) == row.value;
        if continues_from(None) {
            return if self.report.values.is_empty() {
                let last = number.saturating_sub(1);
                BreakKind::Inserted { first: 1, last }
            } else {
                BreakKind::BeginsAgain
            };
        }
        let after = (1..).zip(self.rows).find_map(|(line, other)| {
            let other = other.as_ref()?;
            continues_from(Some(other.value)).then_some(line)
        });
        match after {
            Some(after) if after + 1 < number => BreakKind::Inserted {
                first: after + 1,
                last: number - 1,
            },
            Some(after) if after >= number => BreakKind::Moved { after },
            _ => BreakKind::Altered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines as the harness and another program write them: `+` is a row of
    /// ours, anything else is a line of another.
    fn written(what: &[&str]) -> Vec<String> {
        let mut chain = Chain::default();
        let mut lines = Vec::new();
        for (number, text) in what.iter().enumerate() {
            let line = match text.strip_prefix('+') {
                Some(text) => chain.line(&format!(r#"{{"n":{number},"t":"{text}"}}"#)).0,
                None => (*text).to_owned(),
            };
            chain.follow(line.as_bytes());
            lines.push(line);
        }
        lines
    }

    fn check(lines: &[String]) -> ChainReport {
        check_chain(lines.iter().map(String::as_bytes))
    }

    fn kinds(lines: &[String]) -> Vec<(u64, BreakKind)> {
        let breaks = check(lines).breaks.into_iter();
        breaks.map(|found| (found.line, found.kind)).collect()
    }

    #[test]
    fn what_was_written_holds_and_says_what_is_anchored() {
        let lines = written(&["old", "+a", "", "{\"x\":1}", "# note", "+b", "later"]);
        let report = check(&lines);
        assert_eq!(report.breaks, []);
        assert_eq!((report.covered, report.uncovered), (vec![1, 4, 5], vec![7]));
        assert_eq!(report.values.keys().copied().collect::<Vec<_>>(), [2, 6]);
        assert_eq!(check(&[]), ChainReport::default());
        assert_eq!(check(&written(&["a", "b"])).head(), None);
    }

    #[test]
    fn each_kind_of_change_is_named() {
        let good = written(&["old", "+a", "+b", "{}", "+c", "+d"]);
        let with = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = good.clone();
            change(&mut lines);
            kinds(&lines)
        };
        let inserted = |first, last| BreakKind::Inserted { first, last };
        assert_eq!(with(&|_| ()), []);
        let edited = with(&|lines| lines[2] = lines[2].replace("\"b\"", "\"B\""));
        assert_eq!(edited, [(3, BreakKind::Altered)]);
        let removed = with(&|lines| drop(lines.remove(2)));
        assert_eq!(removed, [(4, BreakKind::Altered)]);
        let foreign_edited = with(&|lines| lines[3] = "{ }".into());
        assert_eq!(foreign_edited, [(5, BreakKind::Altered)]);
        let foreign_inserted = with(&|lines| lines.insert(5, "{}".into()));
        assert_eq!(foreign_inserted, [(7, inserted(6, 6))]);
        let swapped = with(&|lines| lines.swap(1, 2));
        assert_eq!(swapped[0], (2, BreakKind::Moved { after: 3 }));
        let repeated = with(&|lines| lines.push(lines[2].clone()));
        assert_eq!(repeated, [(7, BreakKind::Repeated { first: 3 })]);
        let first_lost = with(&|lines| drop(lines.remove(0)));
        assert_eq!(first_lost, [(1, BreakKind::Altered)]);
        let spaced = with(&|lines| lines[5] = lines[5].replacen(',', ", ", 1));
        assert_eq!(spaced, [(6, BreakKind::Rewritten)]);
        let doubled = with(&|lines| lines[5] = lines[5].replacen('{', "{\"t\":\"x\",", 1));
        assert_eq!(doubled, [(6, BreakKind::Rewritten)]);
        let unchained = with(&|lines| lines[2] = "{\"n\":2,\"t\":\"b\"}".into());
        assert_eq!(unchained, [(5, BreakKind::Altered)]);
        let joined = with(&|lines| {
            let other = written(&["+x"]);
            lines.extend(other);
        });
        assert_eq!(joined, [(7, BreakKind::BeginsAgain)]);
    }

    #[test]
    fn a_row_that_was_put_in_with_a_right_value_breaks_the_next_one() {
        let mut lines = written(&["+a", "+b"]);
        let mut chain = Chain::default();
        chain.follow(lines[0].as_bytes());
        let (forged, _) = chain.line(r#"{"forged":1}"#);
        lines.insert(1, forged);
        let expected = BreakKind::Inserted { first: 2, last: 2 };
        assert_eq!(kinds(&lines), [(3, expected)]);
    }

    fn some_lines() -> impl Strategy<Value = Vec<String>> {
        let line = prop_oneof![
            3 => "\\+[a-z]{0,4}",
            1 => "[ -~]{0,12}",
            1 => "\\{\"chain\":\"[a-f0-9:sh]{0,8}\"\\}",
        ];
        proptest::collection::vec(line, 0..12).prop_map(|texts| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            written(&texts)
        })
    }

    proptest! {
        #[test]
        fn what_was_written_never_breaks(lines in some_lines()) {
            prop_assert_eq!(check(&lines).breaks, []);
        }

        #[test]
        fn no_line_before_a_chained_row_can_change_unnoticed(
            lines in some_lines(), at in any::<prop::sample::Index>(),
            with in "[ -~]{1,12}", how in 0..3_u8,
        ) {
            let last = check(&lines).values.last_key_value().map(|(line, _)| *line);
            let Some(last) = last else { return Ok(()); };
            let at = at.index(usize::try_from(last).unwrap());
            let mut changed = lines.clone();
            match how {
                0 => drop(changed.remove(at)),
                1 => changed.insert(at, with),
                _ => changed[at] = with,
            }
            let rows = |lines: &[String]| -> Vec<String> {
                let lines = lines.iter().filter(|line| !line.trim().is_empty());
                lines.cloned().collect()
            };
            // Without its last row a chain ends earlier: only an anchor
            // outside of the file tells.
            let ends_earlier = check(&changed).head() != check(&lines).head();
            if rows(&changed) != rows(&lines) && !ends_earlier {
                prop_assert!(!check(&changed).breaks.is_empty());
            }
        }

        #[test]
        fn no_bytes_make_the_check_panic(
            lines in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..40), 0..6)
        ) {
            check_chain(lines.iter().map(Vec::as_slice));
        }
    }
}
