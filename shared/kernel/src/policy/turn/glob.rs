//! Patterns with `*`; `\*` is the letter itself.

/// Returns whether a text matches a pattern in which `*` is any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    matches_until(pattern.as_bytes(), text.as_bytes(), |_| true)
}

/// Returns whether a path matches a pattern in which `*` is any text without a
/// slash, and `**` is any text. An absolute path is matched only by a pattern
/// that begins with a slash or with `**/`.
pub(super) fn matches_path(pattern: &str, path: &str) -> bool {
    let is_anywhere = pattern.starts_with('/') || pattern.starts_with("**/");
    if path.starts_with('/') && !is_anywhere {
        return false;
    }
    // Each `**` begins a part that may be anywhere after the one before it.
    let mut parts = pattern.split("**");
    let first = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    let is_inner = |letter: u8| letter != b'/';
    let Some((last, middle)) = parts.split_last() else {
        return matches_until(first.as_bytes(), path.as_bytes(), is_inner);
    };
    let starts = |part: &str, text: &str| {
        let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
        let mut ends =
            ends.filter(|end| matches_until(part.as_bytes(), &text.as_bytes()[..*end], is_inner));
        ends.next()
    };
    let Some(mut at) = starts(first, path) else {
        return false;
    };
    for part in middle {
        let places = (at..=path.len()).filter(|place| path.is_char_boundary(*place));
        let found = places
            .filter_map(|place| Some(place + starts(part, &path[place..])?))
            .next();
        match found {
            Some(end) => at = end,
            None => return false,
        }
    }
    let mut places = (at..=path.len()).filter(|place| path.is_char_boundary(*place));
    places.any(|place| matches_until(last.as_bytes(), &path.as_bytes()[place..], is_inner))
}

/// Matches greedily, and goes back to the last `*` only: linear in pattern
/// times text.
fn matches_until(pattern: &[u8], text: &[u8], is_inner: impl Fn(u8) -> bool) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(b'\\') if pattern.get(at + 1) == Some(&text[seen]) => {
                at += 2;
                seen += 1;
            }
            Some(letter) if *letter == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((place, from)) if is_inner(text[from]) => {
                    star = Some((place, from + 1));
                    at = place + 1;
                    seen = from + 1;
                }
                _ => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_texts() {
        for (pattern, text, expected) in [
            ("push", "push", true),
            ("push", "pushed", false),
            ("-*f*", "-rf", true),
            ("-*f*", "-r", false),
            ("*", "", true),
            ("/\\*", "/*", true),
            ("/\\*", "/a", false),
            ("a*b*c", "a/x/b/y/c", true),
            ("a*b*c", "a/x/b/y", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_path_is_matched_by_its_parts() {
        for (pattern, path, expected) in [
            ("**", "a/b", true),
            ("**", "/etc/passwd", false),
            ("**/passwd", "/etc/passwd", true),
            ("/**", "/etc/passwd", true),
            ("/**", "etc/passwd", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/b/a.rs", false),
            ("src/**/*.rs", "src/b/c/a.rs", true),
            ("src/**", "src/b/c", true),
            ("src/**", "srcs/b", false),
            ("**/.env", "a/b/.env", true),
            ("**.env", ".env", true),
            ("**/a/**/b", "x/a/y/a/b", true),
            ("**/a/**/b", "x/a/b", false),
            (".premath/**", ".premath/issues.jsonl", true),
        ] {
            assert_eq!(matches_path(pattern, path), expected, "{pattern} {path}");
        }
    }
}
