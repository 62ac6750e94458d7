//! The variables that point programs at the proxy.

/// Names of the proxy's address: programs differ in the letter case.
const PROXY: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// Returns the variables of a command whose network namespace has the proxy at
/// a port of 127.0.0.1.
///
/// Loopback addresses are the namespace's own and bypass the proxy. `ALL_PROXY`
/// is left out: it redirects protocols that the proxy does not speak.
pub fn variables(port: u16) -> Vec<(&'static str, String)> {
    let address = format!("http://127.0.0.1:{port}");
    let mut all: Vec<_> = PROXY.iter().map(|name| (*name, address.clone())).collect();
    for name in ["NO_PROXY", "no_proxy"] {
        all.push((name, "localhost,127.0.0.1,::1".to_owned()));
    }
    // `fetch` of Node honours the variables since Node 24 with this one.
    all.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    all
}
