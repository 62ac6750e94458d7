//! Sizes of files as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// The units, the largest first.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// A text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid size `{0}`: expected for example 20GiB, 500MB or 4096")]
pub struct NoSize(pub String);

impl FromStr for Size {
    type Err = NoSize;

    /// Reads a whole or decimal number and a unit, in any letter case; without
    /// a unit it counts bytes.
    fn from_str(text: &str) -> Result<Self, NoSize> {
        let no_size = || NoSize(text.to_owned());
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let unit = unit.trim();
        let unit = if unit.is_empty() { "B" } else { unit };
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .ok_or_else(no_size)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || part.len() > 9 || (number.contains('.') && part.is_empty()) {
            return Err(no_size());
        }
        let digits = |text: &str| -> Result<u128, NoSize> {
            if text.is_empty() {
                return Ok(0);
            }
            text.parse().map_err(|_| no_size())
        };
        let factor = u128::from(*factor);
        let scale = 10_u128.pow(u32::try_from(part.len()).map_err(|_| no_size())?);
        let bytes = digits(whole)?
            .checked_mul(factor)
            .and_then(|bytes| bytes.checked_add(digits(part).ok()? * factor / scale))
            .ok_or_else(no_size)?;
        u64::try_from(bytes).map(Self).map_err(|_| no_size())
    }
}

impl fmt::Display for Size {
    /// Writes the largest binary unit of which there is at least one, with one
    /// digit after the point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS[..4].iter().find(|(_, factor)| self.0 >= *factor) {
            None => write!(f, "{} B", self.0),
            Some((unit, factor)) => {
                let tenths = u128::from(self.0) * 10 / u128::from(*factor);
                write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            (" 20GiB ", 20 << 30),
            ("1.5 kib", 1536),
            ("500MB", 500_000_000),
            ("2tb", 2_000_000_000_000),
            ("7 B", 7),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in [
            "",
            "GiB",
            "1.",
            ".5GiB",
            "1.2.3",
            "-1",
            "1 GiBs",
            "99999999999999 TiB",
        ] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_638_400, "1.5 MiB"),
            (20 << 30, "20.0 GiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,24}") {
            let _ = text.parse::<Size>();
        }

        #[test]
        fn bytes_read_back(bytes: u64) {
            prop_assert_eq!(bytes.to_string().parse(), Ok(Size(bytes)));
        }
    }
}
