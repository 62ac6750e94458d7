//! Names to addresses.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// The addresses of a name, when they come.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names. The proxy asks once for each connection, and connects to
/// no other address than one of the answer.
pub trait Resolve: Debug + Send + Sync + 'static {
    /// Returns the addresses of a name, the preferred ones first.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// The resolver of the system, with `/etc/hosts` and all else that it reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
