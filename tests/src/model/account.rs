//! The account that an agent is signed in with: tokens that are renewed once
//! each, as ChatGPT's are for Codex (RFC 6749, 6).

use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard};

/// Whose tokens they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    /// The account.
    pub account: &'a str,
    /// The person.
    pub subject: &'a str,
}

/// The one whom the server knows.
pub const HOLDER: Holder<'static> = Holder {
    account: "account-1",
    subject: "person-1",
};

/// When the first token ended, and when the others will.
const PAST: u64 = 1_700_000_000;
const FAR: u64 = 4_000_000_000;

/// What the server gave out, and what it was asked with.
#[derive(Debug, Default)]
pub(super) struct Account {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    renewals: Vec<String>,
    bearers: Vec<String>,
}

impl Account {
    /// Answers a request for new tokens: the newest one is taken, and once.
    pub(super) fn renew(&self, body: &Value) -> Option<Value> {
        let mut seen = self.seen();
        let given = body["refresh_token"].as_str().unwrap_or_default();
        seen.renewals.push(given.to_owned());
        let number = seen.renewals.len() as u64;
        (given == refresh_token(number)).then(|| tokens(HOLDER, number + 1))
    }

    /// Notes with which token a model was asked for.
    pub(super) fn is_asked_with(&self, bearer: &str) {
        self.seen().bearers.push(bearer.to_owned());
    }

    /// Returns the tokens that were to be renewed, in their order.
    pub(super) fn renewals(&self) -> Vec<String> {
        self.seen().renewals.clone()
    }

    /// Returns the tokens that models were asked with, in their order.
    pub(super) fn bearers(&self) -> Vec<String> {
        self.seen().bearers.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no holder of the tokens panics")
    }
}

/// Returns what Codex keeps of a sign-in in `auth.json`. The first tokens are
/// out of date.
pub fn sign_in(holder: Holder<'_>, number: u64) -> Value {
    let mut tokens = tokens(holder, number);
    tokens["account_id"] = json!(holder.account);
    json!({
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": null,
        "tokens": tokens,
        "last_refresh": "2026-01-01T00:00:00Z",
    })
}

/// Returns a refresh token by its number.
pub fn refresh_token(number: u64) -> String {
    format!("refresh-{number}")
}

/// Returns an access token of the known holder by its number.
pub fn access_token(number: u64) -> String {
    web_token(HOLDER, number)
}

fn tokens(holder: Holder<'_>, number: u64) -> Value {
    let token = web_token(holder, number);
    json!({
        "id_token": token,
        "access_token": token,
        "refresh_token": refresh_token(number),
    })
}

/// A JSON web token (RFC 7519) without a valid signature.
fn web_token(holder: Holder<'_>, number: u64) -> String {
    let claims = json!({
        "iss": "https://auth.invalid",
        "sub": holder.subject,
        "email": format!("{}@example.invalid", holder.subject),
        "exp": if number > 1 { FAR } else { PAST },
        "jti": number.to_string(),
        "https://api.openai.com/auth": {
            "chatgpt_account_id": holder.account,
            "chatgpt_plan_type": "pro",
        },
    });
    let parts = [json!({"alg": "none"}).to_string(), claims.to_string()];
    let [head, claims] = parts.map(|part| base64url(part.as_bytes()));
    format!("{head}.{claims}.{}", base64url(b"signature"))
}

/// Encodes base64url without padding (RFC 4648).
fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..=three.len() {
            let letter = bits >> (18 - 6 * at) & 0x3f;
            text.push(char::from(LETTERS[letter as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_is_that_of_its_rfc() {
        let cases = [
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
        ];
        for (plain, encoded) in cases {
            assert_eq!(base64url(plain.as_bytes()), encoded);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn each_token_is_renewed_once() {
        let account = Account::default();
        let ask = |token: &str| account.renew(&json!({"refresh_token": token}));
        assert_eq!(ask("refresh-1").unwrap()["refresh_token"], "refresh-2");
        assert_eq!(ask("refresh-1"), None);
        assert_eq!(account.renewals(), ["refresh-1", "refresh-1"]);
    }
}
