//! What agents say about failures in prose, where they have no other way.

/// Returns whether what an agent reports about its failure is that it had no
/// network.
pub(crate) fn reports_no_network(message: &str) -> bool {
    const PHRASES: &[&str] = &[
        "cannot connect",
        "could not connect",
        "unable to connect",
        "connection refused",
        "connection reset",
        "connection error",
        "econnrefused",
        "econnreset",
        "enotfound",
        "etimedout",
        "getaddrinfo",
        "fetch failed",
        "socket hang up",
        "error sending request",
        "stream disconnected",
    ];
    has_phrase(message, PHRASES)
}

/// Returns whether what an agent reports about its failure is that a limit is
/// used up. Some have no other way to say it.
pub(super) fn reports_limit(message: &str) -> bool {
    const PHRASES: &[&str] = &[
        "usage limit",
        "session limit",
        "rate limit",
        "quota",
        "resource_exhausted",
        "too many requests",
    ];
    has_phrase(message, PHRASES)
}

/// Returns whether a message has one of these sayings, which are lower case.
fn has_phrase(message: &str, sayings: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    sayings.iter().any(|saying| message.contains(saying))
}
