//! What a row says about its batch and its issue, read without making a row of it.
//!
//! A run log has a million rows, and a report is about a few. The others are read
//! here: most lines without a copy and without making values. A line that is written
//! in any unusual way is left to [`StepRow::parse`], so that both always
//! agree about what is a row and what it says.

use super::row::{CUTS, STEP_KIND, StepRow};
use super::{action, is_success};
use crate::failure::FailureClass;
use crate::json::stamp::StampText;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What a row says about its batch and its issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGlance<'a> {
    /// What the row refers to.
    pub action: &'a str,
    /// The result class of the step.
    pub result_class: &'a str,
    /// The issue that it worked on.
    pub issue_id: Option<&'a str>,
    /// The batch.
    pub batch_id: Option<&'a str>,
    /// When it began.
    pub started_at: Option<StampText<'a>>,
    /// The time at which the step ended.
    pub finished_at: StampText<'a>,
    /// The branch that the step's work landed on.
    pub landed_on: Option<&'a str>,
    /// Whether it used up an attempt, as [`StepRow::is_attempt`] says.
    pub is_attempt: bool,
}

impl<'a> From<&'a StepRow> for RowGlance<'a> {
    fn from(row: &'a StepRow) -> Self {
        Self {
            action: &row.action,
            result_class: &row.result_class,
            issue_id: row.issue_id.as_deref(),
            batch_id: row.batch_id.as_deref(),
            started_at: row.started_at.as_ref().map(StampText::from),
            finished_at: StampText::from(&row.finished_at),
            landed_on: row.landing.as_ref().map(|landing| &*landing.target),
            is_attempt: row.is_attempt(),
        }
    }
}

impl<'a> RowGlance<'a> {
    /// Reads a line; `None` where it is to be parsed as a whole. What is returned is
    /// what the parsed row says.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        // What is escaped is not in the line as it reads.
        if line.contains(&b'\\') {
            return None;
        }
        let line = std::str::from_utf8(line).ok()?;
        let mut json = serde_json::Deserializer::from_str(line);
        let fields = (&mut json).deserialize_map(Glancing).ok()?;
        json.end().ok()?;
        fields.glance()
    }
}

/// The fields, where all of them are written plainly.
#[derive(Default)]
struct Fields<'a> {
    known: u32,
    action: &'a str,
    result_class: &'a str,
    issue_id: Option<&'a str>,
    batch_id: Option<&'a str>,
    started_at: Option<&'a str>,
    finished_at: &'a str,
    landed_on: Option<&'a str>,
    classes: Classes,
}

/// What failure classes say about whether a step counts as an attempt.
#[derive(Default)]
struct Classes {
    cut: bool,
    limited: bool,
}

/// Returns the bit of a field that decides whether a line is a row; each may be there
/// once. The first ones must be.
fn bit(name: &str) -> Option<u32> {
    let place = match name {
        "schema" => 0,
        "stepKind" => 1,
        "stepId" => 2,
        "action" => 3,
        "resultClass" => 4,
        "finishedAt" => 5,
        "issueId" => 6,
        "startedAt" => 7,
        "batchId" => 8,
        "landing" => 9,
        "failureClasses" => 10,
        "instructionRefs" => 11,
        "witnessRefs" => 12,
        "lineageRefs" => 13,
        "retry" => 14,
        _ => return None,
    };
    Some(1 << place)
}

/// The bits of those that must be there.
const REQUIRED: u32 = 0b11_1111;

impl<'a> Fields<'a> {
    fn glance(self) -> Option<RowGlance<'a>> {
        let Classes { cut, limited } = self.classes;
        // Whether a limit cut it depends on what the whole row says; a review is about
        // the steps that its lineage names; the others have a text for a person.
        let is_whole = [action::REVIEWED, action::BATCH_END, action::LANE_GIVEN_UP];
        if self.known & REQUIRED != REQUIRED || limited || is_whole.contains(&self.action) {
            return None;
        }
        let started_at = match self.started_at {
            Some(text) => Some(StampText::parse(text)?),
            None => None,
        };
        let is_step = self.action == action::WORKER_LOOP;
        Some(RowGlance {
            action: self.action,
            result_class: self.result_class,
            issue_id: self.issue_id,
            batch_id: self.batch_id,
            started_at,
            finished_at: StampText::parse(self.finished_at)?,
            landed_on: self.landed_on,
            is_attempt: is_step && (!cut || is_success(self.result_class)),
        })
    }

    fn take<M: MapAccess<'a>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        let Some(bit) = bit(name) else {
            return map.next_value_seed(Sound);
        };
        if self.known & bit != 0 {
            return Err(unusual());
        }
        self.known |= bit;
        match name {
            "schema" => fits(map.next_value::<u64>()? == 1)?,
            "stepKind" => fits(map.next_value::<&str>()? == STEP_KIND)?,
            "stepId" => drop(map.next_value_seed(Plain)?),
            "action" => self.action = map.next_value_seed(Plain)?,
            "resultClass" => self.result_class = map.next_value_seed(Plain)?,
            "finishedAt" => self.finished_at = map.next_value_seed(Plain)?,
            "issueId" => self.issue_id = Some(map.next_value_seed(Plain)?),
            "startedAt" => self.started_at = Some(map.next_value_seed(Plain)?),
            "batchId" => self.batch_id = Some(map.next_value_seed(Plain)?),
            "landing" => self.landed_on = Some(map.next_value_seed(Landing)?),
            "failureClasses" => self.classes = map.next_value_seed(ClassList)?,
            "retry" => map.next_value_seed(Sound)?,
            _ => map.next_value_seed(TextList)?,
        }
        Ok(())
    }
}

fn unusual<E: Error>() -> E {
    E::custom("not written plainly")
}

fn fits<E: Error>(fits: bool) -> Result<(), E> {
    if fits { Ok(()) } else { Err(unusual()) }
}

struct Glancing;

impl<'a> Visitor<'a> for Glancing {
    type Value = Fields<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Fields<'a>, M::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key_seed(Name)? {
            fields.take(name, &mut map)?;
        }
        Ok(fields)
    }
}

/// The name of a field; `serde_json` gives a meaning of its own to some that begin so.
struct Name;

impl<'a> DeserializeSeed<'a> for Name {
    type Value = &'a str;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<&'a str, D::Error> {
        let name = <&str as serde::Deserialize>::deserialize(deserializer)?;
        fits(!name.starts_with('$'))?;
        Ok(name)
    }
}

/// A text that is not blank and reads as it is written.
struct Plain;

impl<'a> DeserializeSeed<'a> for Plain {
    type Value = &'a str;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<&'a str, D::Error> {
        let text = <&str as serde::Deserialize>::deserialize(deserializer)?;
        let ends = [text.as_bytes().first(), text.as_bytes().last()];
        fits(ends.iter().all(|end| end.is_some_and(u8::is_ascii_graphic)))?;
        Ok(text)
    }
}

/// Any value that can be read; only that is checked.
struct Sound;

impl<'a> DeserializeSeed<'a> for Sound {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Sound {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut items: S) -> Result<(), S::Error> {
        while items.next_element_seed(Sound)?.is_some() {}
        Ok(())
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        while map.next_key_seed(Name)?.is_some() {
            map.next_value_seed(Sound)?;
        }
        Ok(())
    }
}

/// A landing of exactly its fields; returns the branch.
struct Landing;

impl<'a> DeserializeSeed<'a> for Landing {
    type Value = &'a str;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<&'a str, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Landing {
    type Value = &'a str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a landing")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<&'a str, M::Error> {
        let (mut target, mut commit) = (None, None);
        while let Some(name) = map.next_key_seed(Name)? {
            let text = Some(map.next_value_seed(Plain)?);
            let earlier = match name {
                "target" => std::mem::replace(&mut target, text),
                "commit" => std::mem::replace(&mut commit, text),
                _ => text,
            };
            fits(earlier.is_none())?;
        }
        target.filter(|_| commit.is_some()).ok_or_else(unusual)
    }
}

/// A list of texts.
struct TextList;

impl<'a> DeserializeSeed<'a> for TextList {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for TextList {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of texts")
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut items: S) -> Result<(), S::Error> {
        while items.next_element::<&str>()?.is_some() {}
        Ok(())
    }
}

/// A list of failure classes.
struct ClassList;

impl<'a> DeserializeSeed<'a> for ClassList {
    type Value = Classes;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Classes, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for ClassList {
    type Value = Classes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of failure classes")
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut items: S) -> Result<Classes, S::Error> {
        let mut classes = Classes::default();
        while let Some(class) = items.next_element_seed(Plain)? {
            classes.cut |= CUTS.iter().any(|cut| cut.as_str() == class);
            classes.limited |= FailureClass::UsageLimit.as_str() == class;
        }
        Ok(classes)
    }
}

#[cfg(test)]
mod tests;
