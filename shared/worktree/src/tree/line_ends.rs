//! Line ends of texts between a worktree and a commit (gitattributes(5)).

use super::Tree;
use super::beneath::path;
use super::git_settings::AutoCrlf;
use git2::{AttrCheckFlags, AttrValue, Oid};

/// What git does with the line ends of a file when it stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// They stay.
    Kept,
    /// They become line feeds.
    Text,
    /// They become line feeds where the file looks like a text, and where the text that
    /// was stored before has no others.
    Auto,
}

impl LineEnds {
    /// Returns a file as it is stored. `has_others` says whether what was stored before
    /// is a text with other line ends.
    pub(super) fn stored(self, text: Vec<u8>, has_others: impl FnOnce() -> bool) -> Vec<u8> {
        let is_converted = match self {
            Self::Kept => false,
            Self::Text => true,
            Self::Auto => Bytes::of(&text).is_text() && !has_others(),
        };
        if is_converted { plain(text) } else { text }
    }
}

impl Tree {
    /// Returns what happens to the line ends of a file before it is stored, by the
    /// attributes that the operator's checkout has: those among the files are the
    /// step's.
    pub(super) fn line_ends(&self, name: &[u8]) -> LineEnds {
        let value = |attribute| {
            // Asked of the operator's checkout: libgit2 opens the file of attributes of
            // the worktree that it is asked in, whatever it is.
            let flags = AttrCheckFlags::INDEX_ONLY;
            let value = self.history.get_attr_bytes(path(name), attribute, flags);
            // A copy of these bytes would be a text.
            AttrValue::from_bytes(value.ok().flatten())
        };
        let of = |value| match value {
            AttrValue::True | AttrValue::String("input") => Some(LineEnds::Text),
            AttrValue::False => Some(LineEnds::Kept),
            AttrValue::String("auto") => Some(LineEnds::Auto),
            _ => None,
        };
        // `crlf` is what `text` was called once.
        if let Some(found) = of(value("text")).or_else(|| of(value("crlf"))) {
            return found;
        }
        match (value("eol"), self.settings().line_ends) {
            (AttrValue::String("lf" | "crlf"), _) => LineEnds::Text,
            (_, AutoCrlf::Off) => LineEnds::Kept,
            (_, AutoCrlf::Input | AutoCrlf::On) => LineEnds::Auto,
        }
    }

    /// Returns whether a blob is a text with other line ends than line feeds.
    pub(super) fn has_other_line_ends(&self, id: Oid) -> bool {
        let blob = self.repository.find_blob(id);
        blob.is_ok_and(|blob| {
            let bytes = Bytes::of(blob.content());
            bytes.is_text() && bytes.pairs > 0
        })
    }
}

/// How many bytes of a kind a file has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Bytes {
    /// Carriage returns before a line feed.
    pairs: usize,
    /// Other carriage returns.
    returns: usize,
    nuls: usize,
    printable: usize,
    others: usize,
}

impl Bytes {
    fn of(content: &[u8]) -> Self {
        let mut found = Self::default();
        // The end-of-file mark of old systems.
        let counted = content.strip_suffix(b"\x1a").unwrap_or(content);
        let mut rest = counted.iter().peekable();
        while let Some(byte) = rest.next() {
            let count = match byte {
                b'\r' if rest.next_if(|next| **next == b'\n').is_some() => &mut found.pairs,
                b'\r' => &mut found.returns,
                b'\n' => continue,
                0 => &mut found.nuls,
                0x08 | b'\t' | 0x0c | 0x1b | b' '..=0x7e | 0x80.. => &mut found.printable,
                _ => &mut found.others,
            };
            *count += 1;
        }
        found
    }

    /// Returns whether git takes it for a text.
    fn is_text(&self) -> bool {
        self.returns == 0 && self.nuls == 0 && self.others <= self.printable >> 7
    }
}

/// Makes line ends line feeds.
fn plain(text: Vec<u8>) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\r' || rest.peek() != Some(&b'\n') {
            plain.push(byte);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(line_ends: LineEnds, text: &[u8], has_others: bool) -> Vec<u8> {
        line_ends.stored(text.to_vec(), || has_others)
    }

    #[test]
    fn line_ends_of_a_text_are_plain() {
        for line_ends in [LineEnds::Text, LineEnds::Auto] {
            assert_eq!(stored(line_ends, b"a\r\nb\r\n", false), b"a\nb\n");
            assert_eq!(stored(line_ends, b"a\r\n\x1a", false), b"a\n\x1a");
        }
        assert_eq!(stored(LineEnds::Text, b"a\rb\r", false), b"a\rb\r");
        assert_eq!(stored(LineEnds::Text, b"\0\r\n", false), b"\0\n");
        assert_eq!(stored(LineEnds::Kept, b"a\r\n", false), b"a\r\n");
    }

    #[test]
    fn what_is_no_text_is_kept_where_git_decides() {
        let many = [&[b'a'; 128][..], b"\x01\r\n"].concat();
        assert_eq!(stored(LineEnds::Auto, &many, false).len(), 130);
        for text in [
            &b"a\rb\r\n"[..],
            b"\0\r\n",
            b"a\x01\r\n",
            b"sig\r\n\x01\x02\xff\xfe c\rd\r\n",
        ] {
            assert_eq!(stored(LineEnds::Auto, text, false), text);
        }
        assert_eq!(stored(LineEnds::Auto, b"a\r\n", true), b"a\r\n");
    }
}
