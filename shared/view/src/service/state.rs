//! The first line of a unit says what the others are, so that a unit that a person
//! changed is known.

use premath_kernel::json::canonical::sha256_hex;

const SEAL: &str = "# premath-service-v1 sha256:";

/// Whose a unit file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// It is as it was written.
    Ours,
    /// A person wrote or changed it.
    Changed,
}

/// Puts the digest of a text in front of it.
pub(super) fn sealed(text: &str) -> String {
    format!("{SEAL}{}\n{text}", sha256_hex(text.as_bytes()))
}

/// Returns whether a unit file was made by `premath service install`, whatever a person
/// changed in it since.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(SEAL)
}

/// Returns whose a unit file is.
pub fn state_of(text: &str) -> UnitState {
    let parts = text.split_once('\n').and_then(|(first, rest)| {
        let digest = first.strip_prefix(SEAL)?;
        Some((digest, rest))
    });
    match parts {
        Some((digest, rest)) if digest == sha256_hex(rest.as_bytes()) => UnitState::Ours,
        _ => UnitState::Changed,
    }
}
