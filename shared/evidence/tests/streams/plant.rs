//! Faults, planted in a whole stream.

/// What is done to a stream.
pub(crate) enum Plant {
    /// The line with this text is lost.
    Drop(&'static str),
    /// The line with this text comes twice.
    Twice(&'static str),
    /// The two texts represent each other, everywhere.
    Swap(&'static str, &'static str),
    /// The first text is replaced by the second, once.
    Replace(&'static str, &'static str),
    /// A line comes before the one with the text.
    Before(&'static str, &'static str),
    /// The line with the first text comes before that with the second.
    Move(&'static str, &'static str),
    /// The stream ends so many bytes early.
    Cut(usize),
    /// The stream ends before the line with the text.
    End(&'static str),
}

impl Plant {
    pub(crate) fn into(&self, stream: &str) -> String {
        let mut lines: Vec<&str> = stream.lines().collect();
        let at = |lines: &[&str], text: &str| {
            let found = lines.iter().position(|line| line.contains(text));
            found.unwrap_or_else(|| panic!("no line has {text}"))
        };
        match *self {
            Self::Drop(text) => {
                lines.remove(at(&lines, text));
            }
            Self::Twice(text) => {
                let place = at(&lines, text);
                lines.insert(place, lines[place]);
            }
            Self::Swap(one, other) => {
                assert!(stream.contains(one) && stream.contains(other));
                let swapped = stream.replace(one, "\0").replace(other, one);
                return swapped.replace('\0', other);
            }
            Self::Replace(text, with) => {
                assert!(stream.contains(text), "nothing has {text}");
                return stream.replacen(text, with, 1);
            }
            Self::Before(line, text) => lines.insert(at(&lines, text), line),
            Self::Move(text, before) => {
                let line = lines.remove(at(&lines, text));
                lines.insert(at(&lines, before), line);
            }
            Self::Cut(bytes) => return stream[..stream.len() - bytes].to_owned(),
            Self::End(text) => lines.truncate(at(&lines, text)),
        }
        lines.join("\n") + "\n"
    }
}
