//! Keys as the terminal reports them: bytes of its input, read without waiting and
//! taken apart here, so that a terminal that is gone ends the view.

use premath_view::live::Key;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use std::io;
use std::time::Duration;

/// How many bytes are read at once.
const PART: usize = 1 << 10;

const ESCAPE: u8 = 0x1b;

/// What a person did at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A key of the view.
    Key(Key),
    /// Paint it all again.
    Repaint,
}

/// The input of the terminal.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// What is not taken apart yet: the begin of a sequence.
    rest: Vec<u8>,
}

impl Input {
    /// Waits for keys, for a time or until a signal comes; `None` where the terminal
    /// is gone.
    pub(super) fn typed(&mut self, within: Duration) -> Option<Vec<Typed>> {
        let input = io::stdin();
        let within = Timespec::try_from(within).ok()?;
        let mut watched = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut watched, Some(&within)) {
            Ok(0) | Err(Errno::INTR) => return Some(Vec::new()),
            Ok(_) => {}
            Err(_) => return None,
        }
        let mut part = [0; PART];
        match read(&input, &mut part) {
            Ok(0) => None,
            Ok(count) => Some(self.taken(&part[..count])),
            Err(Errno::INTR | Errno::AGAIN) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// Takes bytes apart.
    fn taken(&mut self, part: &[u8]) -> Vec<Typed> {
        self.rest.extend_from_slice(part);
        let bytes = std::mem::take(&mut self.rest);
        let (mut left, mut typed) = (&bytes[..], Vec::new());
        while let Some(first) = left.first() {
            let (found, length) = match *first {
                ESCAPE => sequence(left),
                byte @ (0..=0x1f | 0x7f) => (control(byte), 1),
                _ => character(left),
            };
            if length == 0 {
                // The rest of it is yet to come.
                self.rest = left.to_vec();
                break;
            }
            typed.extend(found);
            left = &left[length..];
        }
        typed
    }
}

/// Reads a control character.
const fn control(byte: u8) -> Option<Typed> {
    Some(Typed::Key(match byte {
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        0x7f | 0x08 => Key::Backspace,
        // Ctrl-F and Ctrl-D, Ctrl-B and Ctrl-U, Ctrl-L, as in `less`.
        0x06 | 0x04 => Key::PageDown,
        0x02 | 0x15 => Key::PageUp,
        0x0c => return Some(Typed::Repaint),
        _ => return None,
    }))
}

/// Reads a character of UTF-8 and its length; none of it that is not whole.
fn character(bytes: &[u8]) -> (Option<Typed>, usize) {
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => return (None, 1),
    };
    let Some(whole) = bytes.get(..length) else {
        return (None, 0);
    };
    let text = std::str::from_utf8(whole).ok();
    match text.and_then(|text| text.chars().next()) {
        Some(c) => (Some(Typed::Key(Key::Char(c))), length),
        None => (None, 1),
    }
}

/// Reads a sequence that begins with Escape, and its length. Alone it is the key.
fn sequence(bytes: &[u8]) -> (Option<Typed>, usize) {
    let key = |key| Some(Typed::Key(key));
    match bytes {
        [_] | [_, ESCAPE, ..] => (key(Key::Escape), 1),
        [_, b'O'] | [_, b'['] => (None, 0),
        [_, b'O', last, ..] => (last_byte(*last).and_then(key), 3),
        [_, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            let Some(end) = end else {
                // No terminal sends one that is longer.
                return (None, if rest.len() > 32 { bytes.len() } else { 0 });
            };
            let found = match (&rest[..end], rest[end]) {
                (b"1" | b"7", b'~') => Some(Key::Home),
                (b"4" | b"8", b'~') => Some(Key::End),
                (b"5", b'~') => Some(Key::PageUp),
                (b"6", b'~') => Some(Key::PageDown),
                (_, last) => last_byte(last),
            };
            (found.and_then(key), end + 3)
        }
        // Alt with a key.
        [_, _, ..] => (None, 2),
        [] => (None, 0),
    }
}

const fn last_byte(byte: u8) -> Option<Key> {
    Some(match byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'Z' => Key::Tab,
        b'M' => Key::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(parts: &[&[u8]]) -> Vec<Typed> {
        let mut input = Input::default();
        parts.iter().flat_map(|part| input.taken(part)).collect()
    }

    #[test]
    fn keys_are_read_as_terminals_send_them() {
        for (bytes, expected) in [
            (&b"q"[..], Key::Char('q')),
            ("\u{65e5}".as_bytes(), Key::Char('\u{65e5}')),
            (b"\r", Key::Enter),
            (b"\t", Key::Tab),
            (b"\x7f", Key::Backspace),
            (b"\x1b", Key::Escape),
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;2C", Key::Right),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[6~", Key::PageDown),
            (b"\x1b[H", Key::Home),
            (b"\x1b[4~", Key::End),
            (b"\x04", Key::PageDown),
        ] {
            assert_eq!(keys(&[bytes]), [Typed::Key(expected)], "{bytes:?}");
        }
        assert_eq!(keys(&[b"\x0c"]), [Typed::Repaint]);
    }

    #[test]
    fn parts_are_put_together_and_what_is_no_key_is_left_out() {
        let (j, up) = (Typed::Key(Key::Char('j')), Typed::Key(Key::Up));
        assert_eq!(keys(&[b"j\x1b[", b"Aj"]), [j, up, j]);
        assert_eq!(
            keys(&[b"\xe6\x97", b"\xa5"]),
            [Typed::Key(Key::Char('\u{65e5}'))]
        );
        // Alt with a key, a function key, a byte outside of UTF-8, a lost paste mark.
        assert_eq!(keys(&[b"\x1bq\x1b[15~\xff\x1b[200~j"]), [j]);
        let endless = [&b"\x1b["[..], &[b'1'; 64]].concat();
        assert_eq!(keys(&[&endless, b"j"]), [j]);
    }
}
