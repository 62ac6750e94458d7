//! What a batch's changes rest on: an instruction, or a person's reason
//! (`contracts.md` 8).

use super::keys::BatchKeys;
use super::scope::{ScopePaths, ScopePatternError};
use super::{Adapter, LoopFlags, SettingsError, Workforce, path_of};
use premath_kernel::authority::MutationMode;
use premath_kernel::authority::instruction::{
    BindingError, Classification, Instruction, STARTUP_CHECK, update_command,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::reference::RefSet;
use premath_memory::instruction::{ActivePolicy, InstructionFileError, read};
use std::path::{Path, PathBuf};

/// An instruction that authorises nothing; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum InstructionError {
    /// None is named, and no person's reason is given.
    #[error("no instruction given, and changing issues requires one")]
    Missing,
    /// It or the active policy cannot be read.
    #[error(transparent)]
    File(#[from] InstructionFileError),
    /// The active policy does not admit it for a batch.
    #[error(transparent)]
    Refused(#[from] BindingError),
    /// It admits evidence of another normaliser than the batch's.
    #[error(
        "instruction {reference} admits evidence normalised by `{admitted}`, but the adapter \
         `{adapter}` produces `{given}`"
    )]
    Adapter {
        /// The instruction.
        reference: String,
        /// The normaliser that the instruction admits.
        admitted: String,
        /// The batch's adapter.
        adapter: Adapter,
        /// The normaliser of that adapter.
        given: &'static str,
    },
    /// Its scope has a pattern that is none.
    #[error("instruction {reference}: scope.paths")]
    Scope {
        /// The instruction.
        reference: String,
        /// The pattern.
        source: ScopePatternError,
    },
    /// It requests a check that the batch has no command for.
    #[error("instruction {reference} requests the check `{check}`, but no {check} command is set")]
    CheckUnbound {
        /// The instruction.
        reference: String,
        /// The check.
        check: &'static str,
    },
}

impl InstructionError {
    /// Returns the failure classes, in the order in which they were found.
    pub(crate) fn classes(&self) -> Vec<FailureClass> {
        match self {
            Self::Missing => vec![FailureClass::InstructionModeUnavailable],
            Self::File(error) => vec![error.class()],
            Self::Refused(error) => error.classes(),
            Self::Adapter { .. } => vec![FailureClass::InstructionNormalizerNotAllowed],
            Self::CheckUnbound { .. } => vec![FailureClass::InstructionCheckUnbound],
            Self::Scope { .. } => vec![FailureClass::InstructionScopeInvalid],
        }
    }

    /// Returns the instruction, where it could be read.
    pub(crate) fn refs(&self) -> RefSet {
        let reference = match self {
            Self::Missing | Self::File(_) => None,
            Self::Refused(error) => Some(&error.reference),
            Self::Adapter { reference, .. }
            | Self::Scope { reference, .. }
            | Self::CheckUnbound { reference, .. } => Some(reference),
        };
        reference.into_iter().collect()
    }

    /// Returns how the active policy classifies the instruction, where it came
    /// to that.
    pub(crate) fn classification(&self) -> Option<&Classification> {
        match self {
            Self::Refused(error) => Some(&error.classification),
            _ => None,
        }
    }

    /// Returns the exit code: what cannot be read is usage, the rest is refused.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::File(InstructionFileError::Policy { .. })
            | Self::Missing
            | Self::Refused(_)
            | Self::Adapter { .. }
            | Self::Scope { .. }
            | Self::CheckUnbound { .. } => crate::exit::REFUSED,
            Self::File(_) => crate::exit::USAGE,
        }
    }

    /// Returns what a person can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Missing => Some(
                "give one with --instruction, PREMATH_INSTRUCTION or instruction under [batch] in \
                 harness.toml (create one with `premath instruction new`, or set the repository up \
                 with `premath init`), or give a reason with --override-reason"
                    .to_owned(),
            ),
            Self::File(error) => error.hint(),
            Self::Refused(_) => Some(
                "check it with `premath instruction check FILE`; create one under the active \
                 policy with `premath instruction new`"
                    .to_owned(),
            ),
            Self::Adapter { given, .. } => Some(format!(
                "create one for this adapter with `{}`, if the active policy allows it",
                update_command(given)
            )),
            Self::Scope { .. } => None,
            Self::CheckUnbound { check, .. } => Some(format!(
                "set {check}_cmd under [batch] in harness.toml, or PREMATH_{}_CMD",
                check.to_uppercase()
            )),
        }
    }
}

/// Makes sure that the batch's evidence is what its instruction admits.
pub(super) fn must_bind(mode: &MutationMode, work: &Workforce) -> Result<(), InstructionError> {
    let (Some(admitted), Some(reference)) = (mode.normalizer_id(), mode.instruction_ref()) else {
        return Ok(());
    };
    let mut adapters = work.all().map(|work| work.adapter);
    match adapters.find(|adapter| adapter.normalizer() != admitted) {
        None => Ok(()),
        Some(adapter) => Err(InstructionError::Adapter {
            reference: reference.to_owned(),
            admitted: admitted.to_owned(),
            adapter,
            given: adapter.normalizer(),
        }),
    }
}

/// Reads the patterns of the files that work may change.
pub(super) fn scope_paths(mode: &MutationMode) -> Result<Option<ScopePaths>, InstructionError> {
    let paths = mode.scope_paths().map(ScopePaths::new).transpose();
    paths.map_err(|source| InstructionError::Scope {
        reference: mode.instruction_ref().unwrap_or_default().to_owned(),
        source,
    })
}

/// What the mode is decided by.
pub(super) struct ModeSelection<'a> {
    pub(super) flags: &'a LoopFlags,
    pub(super) file: &'a BatchKeys,
    pub(super) repository: &'a Path,
    pub(super) has_startup: bool,
    pub(super) now: jiff::Timestamp,
}

/// The two modes, as a person names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModeName {
    InstructionLinked,
    HumanOverride,
}

impl ModeSelection<'_> {
    /// Admits the mode that is asked for.
    pub(super) fn mode(&self) -> Result<MutationMode, SettingsError> {
        match self.name()? {
            ModeName::InstructionLinked => Ok(self.linked()?),
            ModeName::HumanOverride => self.overridden(),
        }
    }

    /// Flags win over environment, environment over file; in each, a mode that
    /// is named wins over what it would rest on. By default an instruction is
    /// asked for.
    fn name(&self) -> Result<ModeName, SettingsError> {
        let (flags, file) = (self.flags, self.file);
        if let Some(name) = &flags.mutation_mode {
            return named(name);
        }
        match (&flags.instruction, &flags.override_reason) {
            (Some(_), Some(_)) => {
                return Err(SettingsError::Value {
                    name: "--mutation-mode",
                    detail: "--instruction and --override-reason are mutually exclusive; choose \
                             one with --mutation-mode instruction-linked or human-override"
                        .to_owned(),
                });
            }
            (Some(_), None) => return Ok(ModeName::InstructionLinked),
            (None, Some(_)) => return Ok(ModeName::HumanOverride),
            (None, None) => {}
        }
        if path_of("PREMATH_INSTRUCTION").is_some() {
            return Ok(ModeName::InstructionLinked);
        }
        match &file.mutation_mode {
            Some(name) => named(name),
            None if file.instruction.is_none() && file.override_reason.is_some() => {
                Ok(ModeName::HumanOverride)
            }
            None => Ok(ModeName::InstructionLinked),
        }
    }

    fn linked(&self) -> Result<MutationMode, InstructionError> {
        let path = self.path().ok_or(InstructionError::Missing)?;
        let (instruction, mode) = linked(&path, self.repository)?;
        let checks = &instruction.envelope().requested_checks;
        if checks.contains(STARTUP_CHECK) && !self.has_startup {
            return Err(InstructionError::CheckUnbound {
                reference: instruction.reference(),
                check: STARTUP_CHECK,
            });
        }
        Ok(mode)
    }

    /// Returns where the instruction is, where one is named.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let file = self.file.instruction.as_deref().map(str::trim);
        self.flags
            .instruction
            .clone()
            .or_else(|| path_of("PREMATH_INSTRUCTION"))
            .or_else(|| Some(self.repository.join(file.filter(|name| !name.is_empty())?)))
    }

    fn overridden(&self) -> Result<MutationMode, SettingsError> {
        let (flags, file) = (self.flags, self.file);
        let reasons = [&flags.override_reason, &file.override_reason];
        let given = reasons.into_iter().flatten();
        let reason = given.map(String::as_str).find(|r| !r.trim().is_empty());
        let until = flags.support_until.as_deref();
        Ok(MutationMode::human_override(
            reason.unwrap_or_default(),
            until.or(file.support_until.as_deref()),
            self.now,
        )?)
    }
}

/// Reads an instruction, and binds it to the policy that is active.
pub(super) fn linked(
    path: &Path,
    repository: &Path,
) -> Result<(Instruction, MutationMode), InstructionError> {
    let active = ActivePolicy::find(None, repository)?;
    let instruction = read(path)?;
    let mode = MutationMode::instruction_linked(&instruction, &active.policy)?;
    Ok((instruction, mode))
}

fn named(name: &str) -> Result<ModeName, SettingsError> {
    match name {
        MutationMode::INSTRUCTION_LINKED => Ok(ModeName::InstructionLinked),
        MutationMode::HUMAN_OVERRIDE => Ok(ModeName::HumanOverride),
        other => Err(SettingsError::Value {
            name: "--mutation-mode",
            detail: format!(
                "unknown mutation mode `{other}`; expected `instruction-linked` or \
                            `human-override`"
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(flags: [Option<&str>; 3], file: [Option<&str>; 3]) -> Option<ModeName> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let flags = LoopFlags {
            mutation_mode: text(flags[0]),
            instruction: flags[1].map(PathBuf::from),
            override_reason: text(flags[2]),
            ..LoopFlags::default()
        };
        let file = BatchKeys {
            mutation_mode: text(file[0]),
            instruction: text(file[1]),
            override_reason: text(file[2]),
            ..BatchKeys::default()
        };
        let wish = ModeSelection {
            flags: &flags,
            file: &file,
            repository: Path::new("."),
            has_startup: false,
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        wish.name().ok()
    }

    #[test]
    fn flags_win_over_the_file_and_a_named_mode_over_what_it_would_rest_on() {
        use ModeName::{HumanOverride as Override, InstructionLinked as Linked};
        const NONE: [Option<&str>; 3] = [None; 3];
        let linked = Some("instruction-linked");
        let human = Some("human-override");
        let some = Some("x");
        for (flags, file, expected) in [
            (NONE, NONE, Some(Linked)),
            (NONE, [None, some, None], Some(Linked)),
            (NONE, [None, None, some], Some(Override)),
            (NONE, [None, some, some], Some(Linked)),
            (NONE, [human, some, some], Some(Override)),
            ([None, some, None], [human, None, some], Some(Linked)),
            ([None, None, some], [linked, some, None], Some(Override)),
            ([None, some, some], NONE, None),
            ([human, some, some], NONE, Some(Override)),
            ([linked, some, some], NONE, Some(Linked)),
            ([some, None, None], NONE, None),
            (NONE, [some, None, None], None),
        ] {
            assert_eq!(name(flags, file), expected, "{flags:?} {file:?}");
        }
    }
}
