//! The pushes of a batch, until they are reported.

use super::Batch;
use premath_kernel::record::event::PushFailure;
use std::sync::{Mutex, PoisonError};

/// The end of a push of the landing target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The branch, without `refs/heads/`.
    pub target: String,
    /// The remote.
    pub remote: String,
    /// The commit that the remote has now, or why it does not have it.
    pub outcome: Result<String, String>,
}

/// Pushes that are yet to be reported.
pub(super) type PushNews = Mutex<Vec<Pushed>>;

impl Batch {
    /// Notes a push for the report.
    pub(crate) fn note_push(&self, remote: &str, commit: &str, failure: Option<&PushFailure>) {
        let mut news = self
            .push_news
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        news.push(Pushed {
            target: self.landing.target().to_owned(),
            remote: remote.to_owned(),
            outcome: match failure {
                Some(failure) => Err(failure.reason.clone()),
                None => Ok(commit.to_owned()),
            },
        });
    }

    /// Takes the pushes that were not reported yet, in their order.
    pub fn take_pushes(&self) -> Vec<Pushed> {
        let mut news = self
            .push_news
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *news)
    }
}
