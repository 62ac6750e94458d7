//! One form for all spellings of a path that may be one file in a checkout.
//!
//! The names to compare with are ASCII. Case-insensitive file systems (APFS,
//! NTFS, ext4 with casefold) fold a few other characters to ASCII letters, HFS+
//! ignores some, and NTFS cuts names at `:` and drops dots and blanks at their
//! end. No other character is canonically equivalent to an ASCII letter, so the
//! table is complete for these names.

/// Characters that HFS+ ignores in names, as git's own check of `.git` has
/// them, and the soft hyphen.
const fn is_ignored(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'
            | '\u{206a}'..='\u{206f}'
            | '\u{feff}'
    )
}

/// What full case folding makes of a character that ends in ASCII letters.
const fn unfolded(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{17f}' => "s",
        '\u{212a}' => "k",
        '\u{df}' | '\u{1e9e}' => "ss",
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

/// Returns a path's components in the form in which they are compared.
pub(super) fn components(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in path.split(['/', '\\']) {
        let part = component(part);
        if !matches!(&*part, "" | ".") {
            parts.push(part);
        }
    }
    parts
}

/// Returns whether a component is its own folded form, and no short name, by a
/// quick check; `false` means unknown.
pub(super) fn is_folded(part: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte);
    part.bytes().all(is_plain) && !part.ends_with('.')
}

fn component(part: &str) -> String {
    if part == ".." {
        return part.to_owned();
    }
    let mut folded = String::with_capacity(part.len());
    for c in part.chars().filter(|c| !is_ignored(*c)) {
        match unfolded(c) {
            Some(text) => folded.push_str(text),
            None => folded.extend(c.to_lowercase()),
        }
    }
    let name = folded.split(':').next().unwrap_or_default();
    name.trim_end_matches(['.', ' ']).to_owned()
}

/// Returns whether a folded component may name a file whose folded name is
/// `name`: it is the name, or a short name that Windows makes of it.
pub(super) fn is_spelling_of(part: &str, name: &str) -> bool {
    part == name || is_short_name_of(part, name)
}

/// Returns whether a component has the form `HARNES~1.TOM` for a name.
fn is_short_name_of(part: &str, name: &str) -> bool {
    const STEM: usize = 8;
    let Some((stem, rest)) = part.split_once('~') else {
        return false;
    };
    let (number, extension) = rest.split_once('.').unwrap_or((rest, ""));
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let bare = name.trim_start_matches('.');
    let (base, long) = bare.rsplit_once('.').unwrap_or((bare, ""));
    let is_short = !name.starts_with('.') && base.len() <= STEM && long.len() <= 3;
    if is_short {
        return false;
    }
    let base: String = base.chars().filter(|c| *c != '.').collect();
    let length = base.len().min(6).min(STEM.saturating_sub(number.len() + 1));
    base.get(..length) == Some(stem) && long.get(..long.len().min(3)) == Some(extension)
}
