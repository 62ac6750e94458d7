//! A worktree made ready to work in, anew only where what it rests on changed.

use super::Lane;
use super::command::{CommandError, Occasion, Phase, Ran};
use super::watch::LeaseWatch;
use premath_kernel::canonical;
use premath_memory::artifact;
use serde_json::{Map, Value, json};

/// Where the digest of the last setup stands, in the worktree's git folder.
const RECORD: &str = "premath-setup";

impl Lane {
    /// Runs the setup command where it never passed here on files like these;
    /// `None` where there is nothing to do.
    pub(super) fn set_up(
        &mut self,
        occasion: &Occasion<'_>,
        watch: Option<&mut LeaseWatch>,
    ) -> Result<Option<Ran>, CommandError> {
        let Some(setup) = self.setup().cloned() else {
            return Ok(None);
        };
        let mut inputs = Map::new();
        for input in &setup.inputs {
            let content = self.tree.committed(input)?;
            inputs.insert(input.to_string_lossy().into_owned(), content.into());
        }
        let digest = canonical::digest(&json!({
            "command": setup.command,
            "inputs": Value::Object(inputs),
        }));
        let record = self.tree.git_folder().join(RECORD);
        if artifact::read(&record)?.is_some_and(|last| last == digest.as_bytes()) {
            return Ok(None);
        }
        let ran = self.run(Phase::Setup, &setup.command, occasion, None, watch)?;
        if ran.passed() {
            artifact::overwrite(&record, digest.as_bytes())?;
        }
        Ok(Some(ran))
    }
}
