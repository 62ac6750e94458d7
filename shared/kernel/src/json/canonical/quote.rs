//! The text of a JSON string.

/// Writes what is between a string's quotes as `serde_json` does, several bytes
/// at a time.
pub(super) fn quote(text: &str, out: &mut Vec<u8>) {
    /// Wide enough for the compiler's vectors, short enough for one line end.
    const STRIDE: usize = 16;
    let bytes = text.as_bytes();
    let mut written = 0;
    let mut escape = |at: usize, byte: u8| {
        out.extend_from_slice(bytes.get(written..at).unwrap_or_default());
        written = at + 1;
        push_escaped(byte, out);
    };
    let (strides, rest) = bytes.as_chunks::<STRIDE>();
    for (number, stride) in strides.iter().enumerate() {
        // No early exit: the comparison of a whole stride is one operation.
        let any = stride
            .iter()
            .fold(0, |any, byte| any | u8::from(is_escaped(*byte)));
        if any != 0 {
            for (offset, byte) in stride.iter().enumerate() {
                if is_escaped(*byte) {
                    escape(number * STRIDE + offset, *byte);
                }
            }
        }
    }
    let done = bytes.len() - rest.len();
    for (offset, byte) in rest.iter().enumerate() {
        if is_escaped(*byte) {
            escape(done + offset, *byte);
        }
    }
    out.extend_from_slice(bytes.get(written..).unwrap_or_default());
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
    fn every_character_that_is_escaped_is_quoted_as_serde_json_does() {
        for byte in 0..=0x7f {
            let text = format!("{0}x{0}{0}", char::from(byte));
            let mut bytes = Vec::new();
            quote(&text, &mut bytes);
            assert_eq!(bytes, between_quotes(&text));
        }
    }
}
