//! The operator's webhook: posts a notification, signed.

use crate::environment::{EnvironmentRules, passes};
use crate::post::{PostError, Poster};
use crate::settings::WebhookSettings;
use hmac::{Hmac, KeyInit, Mac};
use premath_kernel::json::canonical::{canonical, sha256_hex};
use premath_kernel::record::notification::Notification;
use premath_memory::clock;
use sha2::Sha256;
use std::thread;
use std::time::{Duration, Instant};

/// The waits before further tries.
const WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// How many characters of a delivery's digest name it.
const DELIVERY: usize = 32;

/// Posts notifications.
pub(super) struct Webhook {
    poster: Poster,
    /// The key of signatures; none where they are not asked for.
    secret: Option<Secret>,
}

/// The signature over nothing yet, by the secret.
struct Secret(Hmac<Sha256>);

impl Webhook {
    /// Makes it from its settings, with the secret of this process's environment.
    ///
    /// # Errors
    ///
    /// The variable with the secret is not set, or passes to commands: nothing is
    /// sent unsigned that is to be signed.
    pub(super) fn of(settings: &WebhookSettings, rules: &EnvironmentRules) -> Result<Self, String> {
        let secret = match &settings.secret_env {
            None => None,
            // The environment may allow it, which the file alone does not show.
            Some(name) if passes(name, rules) => {
                return Err(format!("{name} passes to the commands of steps"));
            }
            Some(name) => {
                let value = std::env::var_os(name).filter(|value| !value.is_empty());
                let value = value.ok_or_else(|| format!("{name} is not set"))?;
                Some(Secret::of(value.as_encoded_bytes())?)
            }
        };
        Ok(Self {
            poster: Poster::to(settings.url.clone()),
            secret,
        })
    }

    /// Posts a notification, again where that may help, within a time.
    pub(super) fn send(
        &self,
        notification: &Notification,
        most: Duration,
    ) -> Result<(), PostError> {
        let until = Instant::now() + most;
        let body = canonical(notification);
        let event = notification.event.to_string();
        let delivery = &sha256_hex(body.as_bytes())[..DELIVERY];
        // A recorded delivery is known by its age, whatever its document says.
        let now = clock::now().wall.as_second().to_string();
        let secret = self.secret.as_ref();
        let signature = secret.map(|secret| secret.sign(&now, body.as_bytes()));
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("X-Premath-Event", event.as_str()),
            ("X-Premath-Delivery", delivery),
            ("X-Premath-Timestamp", now.as_str()),
        ];
        headers.extend(signature.as_deref().map(|s| ("X-Premath-Signature-256", s)));
        let mut waits = WAITS.into_iter();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let error = match self.poster.post(&headers, body.as_bytes(), left) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let wait = waits.next().filter(|_| error.is_passing());
            let left = until.saturating_duration_since(Instant::now());
            match wait.filter(|wait| *wait < left) {
                Some(wait) => thread::sleep(wait),
                None => return Err(error),
            }
        }
    }
}

impl Secret {
    fn of(key: &[u8]) -> Result<Self, String> {
        let made = Hmac::new_from_slice(key).map(Self);
        made.map_err(|error| error.to_string())
    }

    /// Returns the signature of a body that is sent at a time, as its header has it.
    fn sign(&self, seconds: &str, body: &[u8]) -> String {
        self.sign_all(&[seconds.as_bytes(), b".", body])
    }

    fn sign_all(&self, parts: &[&[u8]]) -> String {
        let mut mac = self.0.clone();
        parts.iter().for_each(|part| mac.update(part));
        let bytes = mac.finalize().into_bytes();
        let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
        format!("sha256={}", hex.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_the_published_vectors() {
        // RFC 4231, cases 2 and 6.
        let short = Secret::of(b"Jefe").unwrap();
        assert_eq!(
            short.sign_all(&[b"what do ya want", b" for nothing?"]),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let long = Secret::of(&[0xaa; 131]).unwrap();
        assert_eq!(
            long.sign_all(&[b"Test Using Larger Than Block-Size Key - Hash Key First"]),
            "sha256=60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_signature_is_of_its_time() {
        let secret = Secret::of(b"key").unwrap();
        let signed = secret.sign("1700000000", b"{}");
        assert_eq!(signed, secret.sign_all(&[b"1700000000.{}"]));
        assert_ne!(signed, secret.sign("1700000001", b"{}"));
    }
}
