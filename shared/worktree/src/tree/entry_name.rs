//! Which names and links a tree may hold that a step made.
//!
//! A checkout on another system or by another git must not take a file for a
//! git folder, and a link must not lead out of the checkout.

use crate::removal::LONGEST;
use std::path::{Component, Path};

/// Characters that some file systems leave out of a name.
const INVISIBLE: [char; 17] = [
    '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
    '\u{202e}', '\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}', '\u{206f}', '\u{feff}',
    '\u{200b}',
];

/// Returns whether a path may be in a tree: no part of it is `.`, `..` or
/// `.git` in any spelling.
pub(super) fn is_fit(path: &[u8]) -> bool {
    !path.is_empty() && path.len() <= LONGEST && path.split(|byte| *byte == b'/').all(is_fit_part)
}

fn is_fit_part(part: &[u8]) -> bool {
    if part.is_empty() || part == b"." || part == b".." {
        return false;
    }
    // A backslash separates folders on Windows.
    part.split(|byte| *byte == b'\\').all(|part| !is_git(part))
}

/// Returns whether a file system may take a name for `.git`.
fn is_git(part: &[u8]) -> bool {
    let text = String::from_utf8_lossy(part);
    let plain: String = text
        .chars()
        .filter(|c| !INVISIBLE.contains(c))
        .flat_map(char::to_lowercase)
        .collect();
    // What follows a colon names a stream; dots and spaces at the end go.
    let plain = plain.split(':').next().unwrap_or_default();
    let plain = plain.trim_end_matches(['.', ' ']);
    plain == ".git" || plain == "git~1"
}

/// Returns whether a path is that of the file in which git looks for
/// submodules, by any name that a file system may take for it.
pub(super) fn is_modules(path: &[u8]) -> bool {
    let text = String::from_utf8_lossy(path);
    let plain: String = text
        .chars()
        .filter(|c| !INVISIBLE.contains(c))
        .flat_map(char::to_lowercase)
        .collect();
    let plain = plain.trim_end_matches(['.', ' ']);
    plain == ".gitmodules" || plain.starts_with("gitmod~")
}

/// Returns whether a file of submodules names no command and no option.
pub(super) fn is_fit_modules(text: &[u8]) -> bool {
    String::from_utf8_lossy(text).lines().all(|line| {
        let Some((key, value)) = line.split_once('=') else {
            return true;
        };
        let value = value.trim().trim_matches('"');
        let key = key.trim().to_ascii_lowercase();
        match key.rsplit([' ', ']', '\t']).next().unwrap_or_default() {
            "update" => !value.starts_with('!'),
            "url" | "path" => !value.starts_with('-'),
            _ => true,
        }
    })
}

/// Returns whether a link at a path stays in its checkout, and out of the
/// folders of git and the harness, whatever other links it leads through.
///
/// `..` is refused behind a name, which may be a link to elsewhere, and so is a
/// link to the checkout itself, through which those folders have other paths.
pub(super) fn is_fit_link(path: &[u8], target: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let at = |bytes| Path::new(std::ffi::OsStr::from_bytes(bytes));
    let mut place: Vec<&[u8]> = at(path)
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .map(|part| part.as_os_str().as_bytes())
        .collect();
    let mut has_name = false;
    for part in at(target).components() {
        match part {
            Component::Normal(name) => {
                has_name = true;
                place.push(name.as_bytes());
            }
            Component::CurDir => {}
            Component::ParentDir => {
                if has_name || place.pop().is_none() {
                    return false;
                }
            }
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    let Some(first) = place.first() else {
        return false;
    };
    *first != b".premath" && *first != b"artifacts" && place.iter().all(|part| is_fit_part(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_git_is_fit() {
        for name in [
            ".git",
            ".GIT",
            "a/.Git/config",
            "git~1",
            "GIT~1/x",
            ".git.",
            ".git ",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            "\u{feff}.git",
            "a\\.git\\hooks",
            "..",
            "a/../b",
            ".",
            "a//b",
            "",
        ] {
            assert!(!is_fit(name.as_bytes()), "{name:?}");
        }
        for name in [
            ".gitignore",
            ".github/x",
            "git",
            "a.git",
            "a/.gitkeep",
            "..a",
            "git~2",
        ] {
            assert!(is_fit(name.as_bytes()), "{name:?}");
        }
        assert!(!is_fit(&[b'a'; LONGEST + 1]));
    }

    #[test]
    fn a_file_of_submodules_names_no_command() {
        for name in [".gitmodules", ".GITMODULES", "gitmod~1"] {
            assert!(is_modules(name.as_bytes()), "{name}");
        }
        assert!(!is_modules(b"a/.gitmodules"));
        let fits = |text: &str| is_fit_modules(text.as_bytes());
        assert!(fits(
            "[submodule \"a\"]\n\tpath = a\n\turl = https://example.com/a\n"
        ));
        assert!(!fits("[submodule \"a\"]\n\tupdate = !touch x\n"));
        assert!(!fits("[submodule \"a\"]\n\turl = -x\n"));
        assert!(!fits("[submodule \"a\"] path = \"-x\"\n"));
    }

    #[test]
    fn a_link_stays_in_its_checkout() {
        for (at, to, fits) in [
            ("a", "b", true),
            ("d/a", "../b", true),
            ("d/a", "../../b", false),
            ("a", "/etc/passwd", false),
            ("a", "..", false),
            ("d/a", "..", false),
            ("d/a", ".", true),
            ("d/e/a", "..", true),
            ("a", ".", false),
            ("a", "x/../../outside", false),
            ("a", "x/../outside", false),
            ("a", ".git\\config", false),
            ("a", ".git/config", false),
            ("a", ".premath/issues.jsonl", false),
            ("d/e/a", "../../../x", false),
            ("a", "d/../../x", false),
            ("a", "./d/x", true),
            ("a", "./d/../x", false),
        ] {
            assert_eq!(
                is_fit_link(at.as_bytes(), to.as_bytes()),
                fits,
                "{at} -> {to}"
            );
        }
    }
}
