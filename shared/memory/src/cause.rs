//! Errors with all their causes, in a line.

use std::error::Error;

/// Returns an error with all its causes, in a line. A cause that the text names already
/// is left out.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let named = error.to_string();
        if !text.ends_with(&named) {
            text = format!("{text}: {named}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreError;
    use std::io;

    #[test]
    fn a_cause_is_named_once() {
        let error = StoreError::Io {
            operation: "write",
            path: "a".into(),
            source: io::Error::other("no space"),
        };
        assert_eq!(error.to_string(), "cannot write a: no space");
        assert_eq!(chain(&error), "cannot write a: no space");
    }
}
