//! What the mains of the two loops say to a person, on stderr.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::deadline::on_the_wall;
use premath_memory::cause::chain;
use std::error::Error;
use std::io::Write;

/// Says a line.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What is reported about a verification that was run without any work.
pub const fn baseline_message(passes: bool) -> &'static str {
    if passes {
        "several issues in a row failed the verification, which passes without changes: the issues \
        are at fault"
    } else {
        "several issues in a row failed the verification, which fails without changes too"
    }
}

/// What is reported about a loop that is to end at a time, by this machine's
/// clocks.
pub fn end_message(at: Timestamp) -> String {
    format!("ends at {}", on_the_wall(&at.to_zoned(local_zone())))
}

/// Returns the time zone of this machine.
pub fn local_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// Says why a loop failed, with its causes and what a person can do about it;
/// returns the exit code that it is given.
pub fn failed(error: &dyn Error, hint: Option<String>, code: u8) -> u8 {
    say(&error_text(error, hint.as_deref()));
    code
}

/// The error, its chain of causes, and the hint on a line of its own.
fn error_text(error: &dyn Error, hint: Option<&str>) -> String {
    let text = format!("error: {}", chain(error));
    let text = plain(&text);
    match hint {
        Some(hint) => format!("{text}\nhint: {}", plain(hint)),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the row of {0} cannot be read")]
    struct Unreadable(&'static str, #[source] std::io::Error);

    #[test]
    fn an_error_names_every_cause_and_spells_out_what_acts_on_a_terminal() {
        let error = Unreadable("a\x1b[31m", std::io::Error::other("no such file"));
        let text = "error: the row of a\\u{1b}[31m cannot be read: no such file";
        assert_eq!(error_text(&error, None), text);
        assert_eq!(
            error_text(&error, Some("look at\x07 it")),
            format!("{text}\nhint: look at\\u{{7}} it")
        );
    }
}
