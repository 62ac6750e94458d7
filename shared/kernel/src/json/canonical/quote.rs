//! The text of a JSON string.

/// Wide enough for the compiler's vectors, short enough for one line end.
const STRIDE: usize = 16;

/// The bytes of a word.
const WORD: usize = 8;

/// Writes what is between a string's quotes as `serde_json` does, several bytes
/// at a time.
pub(super) fn quote(text: &str, out: &mut Vec<u8>) {
    let mut escaped = Escaped {
        bytes: text.as_bytes(),
        written: 0,
        out,
    };
    let (strides, rest) = escaped.bytes.as_chunks::<STRIDE>();
    for (number, stride) in strides.iter().enumerate() {
        // No early exit: the comparison of a whole stride is one operation.
        let any = stride
            .iter()
            .fold(0, |any, byte| any | u8::from(is_escaped(*byte)));
        if any == 0 {
            continue;
        }
        let (words, _) = stride.as_chunks::<WORD>();
        for (word_number, word) in words.iter().enumerate() {
            let at = number * STRIDE + word_number * WORD;
            escaped.word(at, marks(u64::from_le_bytes(*word)));
        }
    }
    let done = escaped.bytes.len() - rest.len();
    for (offset, byte) in rest.iter().enumerate() {
        if is_escaped(*byte) {
            escaped.byte(done + offset);
        }
    }
    let last = escaped.bytes.get(escaped.written..).unwrap_or_default();
    escaped.out.extend_from_slice(last);
}

/// A text that is written up to some byte.
struct Escaped<'a> {
    bytes: &'a [u8],
    written: usize,
    out: &'a mut Vec<u8>,
}

impl Escaped<'_> {
    /// Writes the bytes up to one that is escaped, and that one.
    fn byte(&mut self, at: usize) {
        let Some(byte) = self.bytes.get(at) else {
            return;
        };
        let before = self.bytes.get(self.written..at).unwrap_or_default();
        self.out.extend_from_slice(before);
        push_escaped(*byte, self.out);
        self.written = at + 1;
    }

    /// Does so for each byte of a word that is marked; `at` is where the word begins.
    fn word(&mut self, at: usize, mut marks: u64) {
        while marks != 0 {
            self.byte(at + marks.trailing_zeros() as usize / 8);
            marks &= marks - 1;
        }
    }
}

/// Marks the bytes of a word that are escaped, each by its highest bit. The first
/// byte is the lowest.
const fn marks(word: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; WORD]);
    const HIGH: u64 = 0x80 * EACH;
    // No sum carries into the next byte: the highest bit of each is left out.
    let is_control = !((word & !HIGH) + (0x80 - 0x20) * EACH) & !word;
    let is_quote = zeros(word ^ (b'"' as u64 * EACH));
    let is_backslash = zeros(word ^ (b'\\' as u64 * EACH));
    (is_control | is_quote | is_backslash) & HIGH
}

/// Marks the bytes of a word that are zero.
const fn zeros(word: u64) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7f; WORD]);
    !(((word & LOW) + LOW) | word) & !LOW
}

fn push_escaped(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        byte => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(super::hex(&[byte]).as_bytes());
        }
    }
}

const fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between_quotes(text: &str) -> Vec<u8> {
        let quoted = serde_json::to_vec(text).unwrap();
        quoted[1..quoted.len() - 1].to_vec()
    }

    proptest::proptest! {
        #[test]
        fn a_text_is_quoted_as_serde_json_does(text in "(?s)[\\x00-\\x7f\u{80}-\u{7ff}]{0,80}") {
            let mut bytes = Vec::new();
            quote(&text, &mut bytes);
            proptest::prop_assert_eq!(bytes, between_quotes(&text));
        }
    }

    #[test]
    fn the_bytes_of_a_word_are_marked_that_are_escaped() {
        for byte in 0..=u8::MAX {
            for beside in [0x00, 0x1f, b' ', b'"', b'\\', 0x7f, 0x80, 0xff] {
                for at in 0..WORD {
                    let mut word = [beside; WORD];
                    word[at] = byte;
                    let expected = word.map(|byte| u8::from(is_escaped(byte)) << 7);
                    let marked = marks(u64::from_le_bytes(word));
                    assert_eq!(marked.to_le_bytes(), expected, "{word:?}");
                }
            }
        }
    }

    #[test]
    fn every_character_that_is_escaped_is_quoted_as_serde_json_does() {
        for byte in 0..=0x7f {
            let text = format!("{0}x{0}{0}", char::from(byte));
            let mut bytes = Vec::new();
            quote(&text, &mut bytes);
            assert_eq!(bytes, between_quotes(&text));
        }
    }
}
