//! The environment of a command: what is inherited by rule, and the step's
//! own variables (`agents.md`, `contracts.md` 11).

use crate::settings::EnvironmentRules;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables of git that would point a command at another repository.
const REPOSITORY: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
];

/// Makes the whole environment of a command, sorted by name.
///
/// Our own variables come from `own` alone: one that a caller left behind
/// would name another step.
pub(crate) fn of_command(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    rules: &EnvironmentRules,
    own: &[(&str, OsString)],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| {
        let Some(name) = name.to_str() else {
            return rules.allow.is_none();
        };
        !name.starts_with("PREMATH_")
            && !REPOSITORY.contains(&name)
            && !rules.drop.contains(name)
            && rules
                .allow
                .as_ref()
                .is_none_or(|allow| allow.contains(name))
    };
    let mut all: BTreeMap<OsString, OsString> = inherited
        .into_iter()
        .filter(|(name, _)| passes(name))
        .collect();
    for (name, value) in own {
        all.insert((*name).into(), value.clone());
    }
    without_upkeep(&mut all);
    all.into_iter().collect()
}

/// Returns where a command looks for programs; `None` where that is up to its
/// shell.
pub(crate) fn path(rules: &EnvironmentRules) -> Option<OsString> {
    let all = of_command(std::env::vars_os(), rules, &[]);
    let path = all.into_iter().find(|(name, _)| name == "PATH");
    path.map(|(_, value)| value)
        .filter(|value| !value.is_empty())
}

/// Git's upkeep of itself, which a commit starts in the background: it would
/// be ended with the step, and the locks that it leaves would stop it for good.
const UPKEEP: [(&str, &str); 2] = [("maintenance.auto", "false"), ("gc.auto", "0")];

/// Adds settings for git to those that are there.
fn without_upkeep(all: &mut BTreeMap<OsString, OsString>) {
    let count = all
        .get(OsStr::new("GIT_CONFIG_COUNT"))
        .and_then(|count| count.to_str()?.parse().ok())
        .unwrap_or(0_usize);
    for (number, (key, value)) in (count..).zip(UPKEEP) {
        all.insert(format!("GIT_CONFIG_KEY_{number}").into(), key.into());
        all.insert(format!("GIT_CONFIG_VALUE_{number}").into(), value.into());
    }
    let count = (count + UPKEEP.len()).to_string();
    all.insert("GIT_CONFIG_COUNT".into(), count.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(rules: &EnvironmentRules) -> Vec<String> {
        let inherited = ["PATH", "HOME", "TOKEN", "PREMATH_ISSUE_ID", "GIT_DIR"]
            .map(|name| (name.into(), "x".into()));
        of_command(inherited, rules, &[("PREMATH_STEP_ID", "s".into())])
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .filter(|name| !name.starts_with("GIT_CONFIG_"))
            .collect()
    }

    #[test]
    fn settings_for_git_are_added_to_those_that_are_there() {
        let inherited = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "x"),
        ]
        .map(|(name, value)| (name.into(), value.into()));
        let all: BTreeMap<OsString, OsString> =
            of_command(inherited, &EnvironmentRules::default(), &[])
                .into_iter()
                .collect();
        let of = |name: &str| all[OsStr::new(name)].to_str().unwrap();
        assert_eq!(of("GIT_CONFIG_COUNT"), "3");
        assert_eq!(of("GIT_CONFIG_KEY_0"), "user.name");
        assert_eq!(of("GIT_CONFIG_KEY_1"), "maintenance.auto");
        assert_eq!(of("GIT_CONFIG_VALUE_2"), "0");
    }

    #[test]
    fn a_callers_own_step_and_repository_never_reach_a_command() {
        assert_eq!(
            names(&EnvironmentRules::default()),
            ["HOME", "PATH", "PREMATH_STEP_ID", "TOKEN"]
        );
    }

    #[test]
    fn allow_and_drop_rule_what_is_inherited() {
        let rules = EnvironmentRules {
            allow: Some(["PATH", "TOKEN"].map(String::from).into()),
            drop: ["TOKEN".to_owned()].into(),
        };
        assert_eq!(names(&rules), ["PATH", "PREMATH_STEP_ID"]);
    }
}
