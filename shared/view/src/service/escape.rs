//! Words and paths as unit files hold them (systemd.syntax(7), systemd.service(5)).

/// A text that no unit file can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// What it is.
    pub what: &'static str,
    /// The text, with its control characters escaped.
    pub text: String,
}

/// Writes a word in double quotes, as command lines and `Environment=` have them:
/// backslash and quote are escaped, and `%`, which begins a specifier, is doubled.
/// `$` is left: [`command`](super::unit) turns its substitution off.
pub(super) fn word(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes a path that is a whole value, as in `WorkingDirectory=`: there are no
/// quotes and no escapes there but `%%`.
pub(super) fn whole_path(what: &'static str, path: &str) -> Result<String, Unwritable> {
    let is_held = path.starts_with('/')
        && !path.chars().any(char::is_control)
        && !path.ends_with(|c: char| c.is_whitespace() || c == '\\');
    match is_held {
        true => Ok(path.replace('%', "%%")),
        false => Err(Unwritable {
            what,
            text: path.escape_debug().to_string(),
        }),
    }
}

/// Writes a text for a person on one line, as in `Description=`.
pub(super) fn line(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    text.trim_end_matches('\\').replace('%', "%%")
}

/// Refuses the path of a program that systemd does not start, however it is written.
pub(super) fn program(path: &str) -> Result<(), Unwritable> {
    let what = "the program's path";
    whole_path(what, path)?;
    match path.contains(['"', '\'', '\\']) {
        false => Ok(()),
        true => Err(Unwritable {
            what,
            text: path.escape_debug().to_string(),
        }),
    }
}
