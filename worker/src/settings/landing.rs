//! `[landing]`: where closed work lands.

use super::file::{ConfigError, wrong};
use super::keys::LandingKeys;
use super::program::Places;
use super::values::Natural;
use super::{LoopFlags, SettingsError};
use premath_kernel::policy::landing::{BATCH_MAX, DEFAULT_SPECULATION, LandingMode, LandingRule};

/// Takes the keys of the file.
///
/// # Errors
///
/// [`ConfigError::Line`] where no work, or too much, would be verified as one.
pub(super) fn checked(keys: LandingKeys, places: &Places) -> Result<LandingKeys, ConfigError> {
    let batch = keys.batch.map(Natural::count);
    if let Some(batch) = batch.filter(|count| !(1..=BATCH_MAX).contains(count)) {
        let detail = format!("`batch` is {batch}: expected 1 to {BATCH_MAX}");
        return Err(wrong(places, "landing.batch", detail));
    }
    Ok(keys)
}

/// Reads where work lands; a target may be given with `refs/heads/`.
pub(super) fn landing_of(
    flags: &LoopFlags,
    file: &LandingKeys,
) -> Result<LandingRule, SettingsError> {
    let mode = flags.landing.as_deref().map(str::parse::<LandingMode>);
    let mode = mode.transpose().map_err(|error| SettingsError::Value {
        name: "--landing",
        detail: error.to_string(),
    })?;
    let mut rule = LandingRule {
        mode: mode
            .or(file.mode.as_ref().map(|word| word.0))
            .unwrap_or_default(),
        check: file.check_cmd.clone(),
        push: file.push.clone(),
        speculation: file.speculation.map_or(DEFAULT_SPECULATION, Natural::count),
        batch: file.batch.map_or(1, Natural::count),
        ..LandingRule::default()
    };
    if let Some(target) = flags.landing_target.as_ref().or(file.target.as_ref()) {
        let name = target.trim();
        name.strip_prefix("refs/heads/")
            .unwrap_or(name)
            .clone_into(&mut rule.target);
    }
    Ok(rule)
}

#[cfg(test)]
mod tests {
    use super::super::FileSettings;
    use super::*;
    use std::path::Path;

    #[test]
    fn how_much_is_verified_as_one_is_bounded() {
        let parse = |text: &str| FileSettings::parse(text, Path::new("h.toml"));
        for (text, expected) in [("", 1), ("batch = 1\n", 1), ("batch = 64\n", 64)] {
            let keys = parse(&format!("[landing]\n{text}")).unwrap().landing;
            let rule = landing_of(&LoopFlags::default(), &keys).unwrap();
            assert_eq!(rule.batch(), expected);
        }
        for wrong in [0, 65] {
            let error = parse(&format!("[landing]\nbatch = {wrong}\n")).unwrap_err();
            let expected = format!("h.toml:2: `batch` is {wrong}: expected 1 to 64");
            assert_eq!(error.to_string(), expected);
        }
        let keys = parse("[landing]\nbatch = 8\nspeculation = 0\n").unwrap();
        let rule = landing_of(&LoopFlags::default(), &keys.landing).unwrap();
        assert!(rule.batch() == 1 && !rule.defers_close());
    }
}
