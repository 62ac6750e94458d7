//! Patterns: `*` is any text, `|` is between alternatives, and a letter after
//! `\` is itself.

/// Returns whether a text matches a pattern in which `*` is any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    alternatives(pattern).any(|one| is_text(one, text))
}

/// Returns whether a host matches a pattern; letter case does not count.
pub(super) fn matches_host(pattern: &str, host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    matches(&pattern.to_ascii_lowercase(), &host.to_ascii_lowercase())
}

/// Returns whether a path matches a pattern as those of `.gitignore` that begin
/// with a slash do: `*` is any text without a slash, and a name that is `**` any
/// number of folders, or at the end all that a folder has. An absolute path is
/// matched only by a pattern that begins with a slash or with `**/`.
pub(super) fn matches_path(pattern: &str, path: &str) -> bool {
    alternatives(pattern).any(|one| is_path(one, path))
}

/// Returns the alternatives of a pattern.
fn alternatives(pattern: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    pattern.split(move |letter| {
        let is_between = letter == '|' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_between
    })
}

/// Goes back to the last `**` only: quadratic in the number of names at most.
fn is_path(pattern: &str, path: &str) -> bool {
    let is_anywhere = pattern.starts_with('/') || pattern.starts_with("**/");
    if path.starts_with('/') && !is_anywhere {
        return false;
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let names: Vec<&str> = path.split('/').collect();
    let (mut at, mut seen) = (0, 0);
    let mut folders: Option<(usize, usize)> = None;
    while seen < names.len() {
        match pattern.get(at) {
            Some(&"**") if at + 1 == pattern.len() => return true,
            Some(&"**") => {
                at += 1;
                folders = Some((at, seen));
            }
            Some(part) if is_text(part, names[seen]) => {
                at += 1;
                seen += 1;
            }
            _ => match folders {
                Some((place, from)) => {
                    folders = Some((place, from + 1));
                    at = place;
                    seen = from + 1;
                }
                None => return false,
            },
        }
    }
    at == pattern.len()
}

/// Matches greedily, and goes back to the last `*` only: at most pattern times
/// text.
fn is_text(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        let (length, letter) = match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, seen));
                continue;
            }
            Some(b'\\') if at + 1 < pattern.len() => (2, pattern.get(at + 1)),
            letter => (1, letter),
        };
        if letter == Some(&text[seen]) {
            at += length;
            seen += 1;
            continue;
        }
        let Some((place, from)) = star else {
            return false;
        };
        star = Some((place, from + 1));
        at = place;
        seen = from + 1;
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
            ("/\\*", "/\\a", false),
            ("a\\|b", "a|b", true),
            ("a\\\\|b", "b", true),
            ("a|b*", "bc", true),
            ("a|b", "c", false),
            ("a|", "", true),
            ("a*b*c", "a/x/b/y/c", true),
            ("a*b*c", "a/x/b/y", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_host_is_matched_in_any_case() {
        assert!(matches_host("*.Example.com", "a.EXAMPLE.com."));
        assert!(!matches_host("*.example.com", "example.com.evil.org"));
    }

    #[test]
    fn a_path_is_matched_by_its_names() {
        for (pattern, path, expected) in [
            ("**", "a/b", true),
            ("**", "", true),
            ("**", "/etc/passwd", false),
            ("**/passwd", "/etc/passwd", true),
            ("**/passwd", "passwd", true),
            ("/**", "/etc/passwd", true),
            ("/**", "etc/passwd", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/b/a.rs", false),
            ("src/**/*.rs", "src/b/c/a.rs", true),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**", "src/b/c", true),
            ("src/**", "srcs/b", false),
            ("src/**", "src", false),
            ("**/.env", "a/b/.env", true),
            ("**/.env", ".env", true),
            ("**/.env", "a.env", false),
            ("**.env", ".env", true),
            ("**/a/**/b", "x/a/y/a/b", true),
            ("**/a/**/b", "x/a/b", true),
            ("**/a/**/b", "x/a/b/c", false),
            (".premath/**", ".premath/issues.jsonl", true),
            ("a/**|b/*", "b/c", true),
        ] {
            assert_eq!(matches_path(pattern, path), expected, "{pattern} {path}");
        }
    }
}
