//! How long leases live.

use super::{LeaseRefusal, refuse};
use crate::failure::FailureClass;
use crate::json::time::Moment;
use std::time::Duration;

/// The shortest time to live.
pub const TTL_MIN: Duration = Duration::from_secs(30);
/// The longest time to live.
pub const TTL_MAX: Duration = Duration::from_secs(86_400);
/// Both, as a configuration file would give them.
pub const TTL_RANGE: &str = "30s to 24h";
/// The time to live where none is given.
pub const TTL_DEFAULT: Duration = Duration::from_secs(3_600);

/// How long a lease is to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// From now on.
    Ttl(Duration),
    /// The lease ends at this time.
    Until(jiff::Timestamp),
}

impl Term {
    pub(super) fn resolve(self, now: Moment) -> Result<(jiff::Timestamp, u64), LeaseRefusal> {
        let ttl = match self {
            Self::Ttl(ttl) => ttl,
            Self::Until(until) => {
                let Ok(ttl) = Duration::try_from(until.duration_since(now.wall)) else {
                    return refuse(
                        FailureClass::LeaseInvalidExpiresAt,
                        format!("{until} is not in the future"),
                    );
                };
                ttl
            }
        };
        let wrong = match self {
            Self::Ttl(_) => FailureClass::LeaseInvalidTtl,
            Self::Until(_) => FailureClass::LeaseInvalidExpiresAt,
        };
        if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
            return refuse(
                wrong,
                format!(
                    "a lease lasts {} to {} seconds, not {}",
                    TTL_MIN.as_secs(),
                    TTL_MAX.as_secs(),
                    ttl.as_secs()
                ),
            );
        }
        let Ok(expires_at) = now.wall.checked_add(ttl) else {
            return refuse(wrong, "the expiry is out of range");
        };
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        Ok((expires_at, now.boot_ms.saturating_add(ttl_ms)))
    }
}
