//! One connection of a client.

use super::State;
use super::dial::dial;
use super::head::{self, HeadError, ProxyRequest, Received};
use super::own;
use super::relay::{CountedConnection, finish};
use premath_kernel::policy::network::{Denial, Host, RecordId, Target};
use std::net::IpAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// The answer to a CONNECT that is admitted.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// An answer that is not the host's.
struct Answer {
    status: u16,
    /// The detail, as one line of ASCII.
    detail: String,
}

/// Answers a proxy request.
pub(super) async fn serve(mut client: UnixStream, state: &State) {
    let received = match timeout(state.limits.head, head::read(&mut client)).await {
        Ok(Ok(received)) => received,
        Ok(Err(HeadError::Nothing)) => return,
        Ok(Err(error)) => {
            state.ledger().malformed();
            let (status, detail) = (error.status(), error.to_string());
            return answer(client, &Answer { status, detail }).await;
        }
        Err(_) => {
            state.ledger().malformed();
            let detail = "timed out reading the request head".to_owned();
            return answer(
                client,
                &Answer {
                    status: 408,
                    detail,
                },
            )
            .await;
        }
    };
    let Received {
        target,
        request,
        rest,
    } = received;
    let (host, id) = match reach(&target, state).await {
        Ok(reached) => reached,
        Err(refusal) => return answer(client, &refusal).await,
    };
    let relay = CountedConnection::new(state, id);
    match request {
        ProxyRequest::Connect => {
            if client.write_all(ESTABLISHED).await.is_ok() {
                relay.tunnel(client, host, &rest).await;
            }
        }
        ProxyRequest::Forward { head, content } => {
            relay.exchange(client, host, (&head, content), &rest).await;
        }
    }
}

/// Connects a client of a service to its target.
pub(super) async fn serve_target(client: UnixStream, target: &Target, state: &State) {
    if let Ok((host, id)) = reach(target, state).await {
        CountedConnection::new(state, id)
            .tunnel(client, host, &[])
            .await;
    }
}

/// Answers a client that there are too many connections.
pub(super) fn refuse_busy(client: &UnixStream) {
    let detail = "too many connections at once".to_owned();
    // The buffer of a new socket has room for it.
    let _ = client.try_write(&text(&Answer {
        status: 503,
        detail,
    }));
}

/// Judges a target and connects to one of the judged addresses.
async fn reach(target: &Target, state: &State) -> Result<(TcpStream, RecordId), Answer> {
    let candidate = state.policy.consider(target);
    let candidate = candidate.map_err(|denial| denied(&denial, state))?;
    let addresses = match &target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => match resolve(name.as_str(), state).await {
            Ok(addresses) => addresses,
            Err(refusal) => {
                let mut ledger = state.ledger();
                let id = ledger.asked(target, None);
                ledger.failed(&id);
                return Err(refusal);
            }
        },
    };
    let judged = candidate.judge(&addresses, &own::among(&addresses));
    let judged = judged.map_err(|denial| denied(&denial, state))?;
    let id = state.ledger().asked(target, None);
    let failed = |status, detail: String| {
        state.ledger().failed(&id);
        Answer { status, detail }
    };
    match timeout(state.limits.connect, dial(judged, target.port)).await {
        Ok(Ok(host)) => Ok((host, id)),
        Ok(Err(error)) => Err(failed(502, format!("cannot connect to {target}: {error}"))),
        Err(_) => Err(failed(504, format!("{target} does not answer"))),
    }
}

async fn resolve(name: &str, state: &State) -> Result<Vec<IpAddr>, Answer> {
    let resolving = state.resolver.resolve(name);
    let (status, detail) = match timeout(state.limits.resolve, resolving).await {
        Ok(Ok(addresses)) if !addresses.is_empty() => return Ok(addresses),
        Ok(Ok(_)) => (502, format!("{name} has no address")),
        Ok(Err(error)) => (502, format!("cannot resolve {name}: {error}")),
        Err(_) => (504, format!("timed out resolving {name}")),
    };
    Err(Answer { status, detail })
}

/// Records a refusal of the policy, and words it.
fn denied(denial: &Denial, state: &State) -> Answer {
    state.ledger().asked(&denial.target, Some(denial.reason));
    Answer {
        status: 403,
        detail: format!(
            "denied by the network policy: {}",
            denial.message(state.phase)
        ),
    }
}

async fn answer(mut client: UnixStream, refusal: &Answer) {
    if client.write_all(&text(refusal)).await.is_ok() {
        finish(client).await;
    }
}

/// Writes an answer. The detail is the reason phrase too: most programs show
/// nothing else of a CONNECT that failed.
fn text(Answer { status, detail }: &Answer) -> Vec<u8> {
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    let line: String = detail
        .chars()
        .map(|c| if is_plain(c) { c } else { '?' })
        .collect();
    let length = line.len() + 1;
    format!(
        "HTTP/1.1 {status} {line}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{line}\n"
    )
    .into_bytes()
}
