//! Who may sign: a file in the form of ssh's allowed signers, as
//! `gpg.ssh.allowedSignersFile` of git names one.

use super::NAMESPACE;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ssh_key::PublicKey;

/// The keys that may sign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedSigners {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    principals: String,
    key: PublicKey,
    /// For git's signatures at all.
    for_git: bool,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

/// A line of the file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {detail}")]
pub struct AllowedLineError {
    /// The line, from 1.
    pub line: usize,
    /// The fault in the line.
    pub detail: String,
}

/// Whether a key may have made a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signed {
    /// It may; the principals are those of its line.
    By(String),
    /// It may not, for this reason.
    Refused(&'static str),
}

impl AllowedSigners {
    /// Returns signers with one key, which may always sign.
    pub fn only(key: PublicKey, principals: &str) -> Self {
        Self {
            entries: vec![Entry {
                principals: principals.to_owned(),
                key,
                for_git: true,
                after: None,
                before: None,
            }],
        }
    }

    /// Reads the text of an allowed signers file. Lines of certificate
    /// authorities admit nothing: certificates are not supported.
    ///
    /// # Errors
    ///
    /// The first line that is none.
    pub fn parse(text: &str) -> Result<Self, AllowedLineError> {
        let mut entries = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry = entry(line).map_err(|detail| AllowedLineError {
                line: number,
                detail,
            })?;
            entries.extend(entry);
        }
        Ok(Self { entries })
    }

    /// Judges a key that signed at a time.
    pub(crate) fn judge(&self, key: &PublicKey, at: Timestamp) -> Signed {
        let mut of_key = self
            .entries
            .iter()
            .filter(|entry| entry.key.key_data() == key.key_data())
            .peekable();
        if of_key.peek().is_none() {
            return Signed::Refused("the key does not belong to an allowed signer");
        }
        let in_force = |entry: &&Entry| {
            entry.after.is_none_or(|after| after <= at)
                && entry.before.is_none_or(|before| at <= before)
        };
        match of_key.find(|entry| entry.for_git && in_force(entry)) {
            Some(entry) => Signed::By(entry.principals.clone()),
            None => Signed::Refused("the key may not sign commits, or not at that time"),
        }
    }
}

/// Reads one line; `None` for a certificate authority's.
fn entry(line: &str) -> Result<Option<Entry>, String> {
    let mut words = words(line).into_iter().peekable();
    let principals = words.next().unwrap_or_default();
    let (mut for_git, mut after, mut before, mut authority) = (true, None, None, false);
    while let Some(word) = words.next_if(|word| !is_key_type(word)) {
        for option in split_options(&word) {
            let (name, value) = option.split_once('=').unwrap_or((&option, ""));
            let value = value.trim_matches('"');
            match name.to_ascii_lowercase().as_str() {
                "namespaces" => for_git = value.split(',').any(|one| one.trim() == NAMESPACE),
                "valid-after" => after = Some(time(value)?),
                "valid-before" => before = Some(time(value)?),
                "cert-authority" => authority = true,
                _ => return Err(format!("unknown option `{name}` of an allowed signer")),
            }
        }
    }
    let (Some(kind), Some(data)) = (words.next(), words.next()) else {
        return Err("it must be principals, options and a public key".to_owned());
    };
    if authority {
        return Ok(None);
    }
    let key = PublicKey::from_openssh(&format!("{kind} {data}"))
        .map_err(|error| format!("the public key cannot be read: {error}"))?;
    Ok(Some(Entry {
        principals: principals.trim_matches('"').to_owned(),
        key,
        for_git,
        after,
        before,
    }))
}

fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"]
        .iter()
        .any(|start| word.starts_with(start))
}

/// Splits a line at white space outside of quotes.
fn words(line: &str) -> Vec<String> {
    split(line, |c| c.is_ascii_whitespace())
}

/// Splits options at commas outside of quotes.
fn split_options(word: &str) -> Vec<String> {
    split(word, |c| c == ',')
}

fn split(text: &str, is_end: impl Fn(char) -> bool) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        quoted ^= c == '"';
        match parts.last_mut() {
            Some(part) if quoted || !is_end(c) => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Reads `YYYYMMDD[HHMM[SS]][Z]`. Without `Z` ssh means the machine's zone,
/// which a verdict must not depend on: it reads as UTC.
fn time(text: &str) -> Result<Timestamp, String> {
    let digits = text.strip_suffix('Z').unwrap_or(text);
    let full = match digits.len() {
        8 => format!("{digits}000000"),
        12 => format!("{digits}00"),
        _ => digits.to_owned(),
    };
    DateTime::strptime("%Y%m%d%H%M%S", &full)
        .and_then(|time| time.to_zoned(TimeZone::UTC))
        .map(|time| time.timestamp())
        .map_err(|_| {
            format!("invalid time `{text}`: expected for example 20260305 or 202603051000Z")
        })
}
