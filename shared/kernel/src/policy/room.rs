//! Room on the machine: below it nothing new is dispatched (`agents.md`,
//! "Supervision").

use crate::json::size::Size;
use std::fmt;
use std::time::Duration;

/// What must be free for a dispatch; 0 asks for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomRule {
    /// Bytes on the disk of the repository.
    pub disk: Size,
    /// Bytes of memory.
    pub memory: Size,
    /// How long a batch of which nothing runs waits for room.
    pub patience: Duration,
}

impl Default for RoomRule {
    fn default() -> Self {
        Self {
            disk: Size(1 << 30),
            memory: Size(512 << 20),
            patience: Duration::from_secs(3_600),
        }
    }
}

/// What is free; what cannot be read counts as enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes on the disk of the repository.
    pub disk: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// `disk` or `memory`.
    pub of: &'static str,
    /// How many bytes are free.
    pub free: Size,
    /// The least amount that must be free.
    pub least: Size,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} free, {} needed",
            self.free, self.of, self.least
        )
    }
}

impl RoomRule {
    /// Returns what there is too little of, where there is.
    pub(crate) fn shortage(&self, room: &Room) -> Option<Shortage> {
        [
            ("disk", room.disk, self.disk),
            ("memory", room.memory, self.memory),
        ]
        .into_iter()
        .find_map(|(of, free, least)| {
            let free = Size(free?);
            (free < least).then_some(Shortage { of, free, least })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_named_and_the_unknown_is_enough() {
        let rule = RoomRule {
            disk: Size(100),
            memory: Size(50),
            ..RoomRule::default()
        };
        for (disk, memory, expected) in [
            (Some(100), Some(50), None),
            (Some(99), Some(50), Some("99 B of disk free, 100 B needed")),
            (Some(99), Some(1), Some("99 B of disk free, 100 B needed")),
            (None, Some(49), Some("49 B of memory free, 50 B needed")),
            (None, None, None),
        ] {
            let short = rule.shortage(&Room { disk, memory });
            assert_eq!(short.map(|short| short.to_string()).as_deref(), expected);
        }
        let none = RoomRule {
            disk: Size(0),
            memory: Size(0),
            ..rule
        };
        let room = Room {
            disk: Some(0),
            memory: Some(0),
        };
        assert_eq!(none.shortage(&room), None);
    }
}
