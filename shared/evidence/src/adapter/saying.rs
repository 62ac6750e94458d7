//! What agents say about failures in prose, where they have no other way.

/// Returns whether what an agent reports about its failure is that it had no
/// network.
pub(crate) fn speaks_of_network(message: &str) -> bool {
    const SAYINGS: &[&str] = &[
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
    says_one(message, SAYINGS)
}

/// Returns whether what an agent reports about its failure is that a limit is
/// used up. Some have no other way to say it.
pub(super) fn speaks_of_limit(message: &str) -> bool {
    const SAYINGS: &[&str] = &[
        "usage limit",
        "session limit",
        "rate limit",
        "quota",
        "resource_exhausted",
        "too many requests",
    ];
    says_one(message, SAYINGS)
}

/// Returns whether a message has one of these sayings, which are lower case.
fn says_one(message: &str, sayings: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    sayings.iter().any(|saying| message.contains(saying))
}
