//! Text from outside in HTML.

use premath_kernel::json::plain::plain;

/// Returns a text that is nothing but text in an element and in an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let line = plain(text);
    let mut escaped = String::with_capacity(line.len() + 8);
    for c in line.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
