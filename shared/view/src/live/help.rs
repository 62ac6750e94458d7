//! The keys, each with what it does.

use super::key::{MAIN, STREAM};
use super::paint::Painter;
use crate::columns::flowed;
use ratatui_core::layout::Rect;

/// How wide the column of the keys is.
const KEYS_WIDTH: usize = 19;

/// What Ctrl-C does.
const WATCH: &str = "Ctrl-C leaves the view, and the batch continues.";
const OWN: &str = "Ctrl-C drains the batch; a second one cancels the running attempts.";

/// What else there is to know.
const NOTES: [&str; 3] = [
    "Every operation is the command of the same name:",
    "premath batch pause, resume, drain; premath cancel; premath retry;",
    "premath issue update --priority.",
];

pub(super) fn paint(painter: &mut Painter<'_>, body: Rect, is_stream: bool, is_own: bool) {
    let keys: &[(&str, &str)] = match is_stream {
        true => &STREAM,
        false => &MAIN,
    };
    let width = painter.width();
    painter.rule(0, "keys", true);
    let mut row = 2;
    let mut put = |lines: Vec<String>| {
        for line in lines {
            if row < usize::from(body.height) {
                painter.line(row, &line, painter.styles.plain);
            }
            row += 1;
        }
    };
    if usize::from(body.height) < keys.len() + 2 {
        put(keys
            .iter()
            .map(|(key, what)| format!("{key:KEYS_WIDTH$}{what}"))
            .collect());
        return;
    }
    for (key, what) in keys {
        put(flowed(
            &format!("  {key:KEYS_WIDTH$}"),
            &[(*what).to_owned()],
            width,
        ));
    }
    if !is_stream {
        put(vec![String::new()]);
        let of_signal = match is_own {
            true => OWN,
            false => WATCH,
        };
        let notes = std::iter::once(&of_signal).chain(&NOTES);
        put(notes.map(|note| format!("  {note}")).collect());
    }
}
