//! A SHA-256 as its bytes.

use super::{hex, push_hex};
use sha2::{Digest, Sha256};
use std::fmt;

/// A SHA-256 that is kept, and written where a document asks for it: half the
/// size of its text, and nothing to allocate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum([u8; 32]);

impl Sum {
    /// Returns the SHA-256 of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the bytes of the sum.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns it in lower-case hexadecimal.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Returns it as documents write a digest: `sha256:` and its hexadecimal.
    pub fn digest(&self) -> String {
        const PREFIX: &str = "sha256:";
        let mut text = String::with_capacity(PREFIX.len() + self.0.len() * 2);
        text.push_str(PREFIX);
        push_hex(&self.0, &mut text);
        text
    }
}

impl From<[u8; 32]> for Sum {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_documents_write_it() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sum::of(b"").hex(), empty);
        assert_eq!(Sum::of(b"").digest(), format!("sha256:{empty}"));
        assert_eq!(format!("{:?}", Sum::of(b"")), format!("sha256:{empty}"));
    }
}
