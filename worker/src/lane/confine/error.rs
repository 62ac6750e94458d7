//! What keeps a command from being confined.

use crate::hooks::HookServerError;
use crate::proxy::ProxyError;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::sandbox::SandboxUnavailable;
use premath_memory::StoreError;
use premath_worktree::tree::TreeError;

/// A command cannot be confined; it is not run then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    #[error(transparent)]
    Unavailable(#[from] SandboxUnavailable),
    #[error("cannot make the private folders of the command")]
    Scratch(#[source] std::io::Error),
    #[error("cannot start the proxy of the command")]
    Proxy(#[from] ProxyError),
    #[error("cannot start the hooks of the agent")]
    Hooks(#[from] HookServerError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ConfineError {
    pub(in crate::lane) fn class(&self) -> FailureClass {
        match self {
            Self::Unavailable(error) => error.class(),
            Self::Scratch(_) | Self::Proxy(_) | Self::Hooks(_) => FailureClass::SandboxUnavailable,
            Self::Tree(error) => error.class(),
            Self::Store(error) => error.class(),
        }
    }
}
