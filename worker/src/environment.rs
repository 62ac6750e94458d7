//! The environment of a command: what is inherited by rule, and the step's
//! own variables (`agents.md`, `contracts.md` 11).

use premath_evidence::Agent;
use premath_kernel::json::canonical;
use premath_platform::manager;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

/// What of the environment a command gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRules {
    /// These pass beside those of the list.
    pub allow: BTreeSet<String>,
    /// These never pass.
    pub drop: BTreeSet<String>,
}

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

/// The port of a confined command's loopback interface where the proxy is.
pub(crate) const PROXY_PORT: u16 = 3128;

/// Variables that pass where no setting says more (`isolation.md` 8): what
/// programs need to find themselves, to speak and to build. None is a secret.
const PASSED: [&str; 62] = [
    "CC",
    "CFLAGS",
    "CI",
    "CLICOLOR",
    "CMAKE_GENERATOR",
    "CMAKE_PREFIX_PATH",
    "COLORTERM",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "FORCE_COLOR",
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GOFLAGS",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "GOTOOLCHAIN",
    "HOME",
    "IS_SANDBOX",
    "JAVA_HOME",
    "JDK_HOME",
    "LANG",
    "LANGUAGE",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "LOGNAME",
    "MAKEFLAGS",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NO_COLOR",
    "PATH",
    "PKG_CONFIG_PATH",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "REQUESTS_CA_BUNDLE",
    "RUSTC_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SHELL",
    "SOURCE_DATE_EPOCH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "UMASK",
    "USER",
    "VIRTUAL_ENV",
];

/// Which of them say where something of the machine's system is. With an image
/// they come from there.
const OF_THE_SYSTEM: [&str; 19] = [
    "CC",
    "CMAKE_PREFIX_PATH",
    "CXX",
    "GOROOT",
    "JAVA_HOME",
    "JDK_HOME",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "PKG_CONFIG_PATH",
    "PYTHONPATH",
    "REQUESTS_CA_BUNDLE",
    "RUSTC_WRAPPER",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "VIRTUAL_ENV",
];

/// Where programs of an image are that does not say it.
const PATH_OF_IMAGES: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The starts of names of variables that pass.
const PASSED_STARTS: [&str; 1] = ["LC_"];

/// Returns whether a variable is one that an agent signs in with or is
/// configured by: it passes to the work alone.
fn is_of_agent(name: &str) -> bool {
    let mut starts = Agent::ALL.iter().flat_map(|agent| agent.spec().variables);
    starts.any(|start| name.starts_with(start))
}

/// Returns what commands inherit before any rule: the variables of this
/// process, or with those of an image in the place of the system's. `allow`
/// keeps one of the system's where the image declares none.
pub(crate) fn inherited(
    image: Option<&[(String, String)]>,
    rules: &EnvironmentRules,
) -> Vec<(OsString, OsString)> {
    merged(std::env::vars_os(), image, rules)
}

fn merged(
    own: impl Iterator<Item = (OsString, OsString)>,
    image: Option<&[(String, String)]>,
    rules: &EnvironmentRules,
) -> Vec<(OsString, OsString)> {
    let Some(image) = image else {
        return own.collect();
    };
    let is_of_the_system = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| OF_THE_SYSTEM.contains(&name) && !rules.allow.contains(name))
    };
    let mut all: BTreeMap<OsString, OsString> =
        own.filter(|(name, _)| !is_of_the_system(name)).collect();
    all.insert("PATH".into(), PATH_OF_IMAGES.into());
    for (name, value) in image {
        all.insert(name.into(), value.into());
    }
    all.into_iter().collect()
}

/// Returns whether a variable passes to some command of a step.
pub(crate) fn passes(name: &str, rules: &EnvironmentRules) -> bool {
    let inherited = [(OsString::from(name), OsString::new())];
    let all = of_command(inherited, rules, true, &[]);
    all.iter().any(|(of, _)| of == name)
}

/// Makes the whole environment of a command, sorted by name.
///
/// Our own variables come from `own` alone: one that a caller left behind
/// would name another step.
pub(crate) fn of_command(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    rules: &EnvironmentRules,
    is_work: bool,
    own: &[(&str, OsString)],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| {
        let Some(name) = name.to_str() else {
            return false;
        };
        let is_known = PASSED.contains(&name)
            || PASSED_STARTS.iter().any(|start| name.starts_with(start))
            || (is_work && is_of_agent(name));
        !name.starts_with("PREMATH_")
            && !REPOSITORY.contains(&name)
            && !manager::VARIABLES.contains(&name)
            && !rules.drop.contains(name)
            && (is_known || rules.allow.contains(name))
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

/// The ports of the first lane begin here, below those that the system gives to
/// connections.
const PORT_BASE: usize = 20_000;
/// How many ports a lane has.
const PORTS: usize = 100;
/// The lanes that have ports.
const LANES_WITH_PORTS: usize = 120;

/// Returns the variables by which lanes share a machine: the number of the
/// lane, its range of ports and what its databases are named with.
pub(crate) fn of_lane(index: usize) -> Vec<(OsString, OsString)> {
    let mut all = vec![
        ("PREMATH_LANE_INDEX".into(), index.to_string().into()),
        (
            "PREMATH_DATABASE_SUFFIX".into(),
            format!("_lane{index}").into(),
        ),
    ];
    if (1..=LANES_WITH_PORTS).contains(&index) {
        let base = PORT_BASE + PORTS * (index - 1);
        all.push(("PREMATH_PORT_BASE".into(), base.to_string().into()));
    }
    all
}

/// Returns the names of the variables that pass to the work of a step, of those
/// that are inherited.
pub(crate) fn passing(
    inherited: Vec<(OsString, OsString)>,
    rules: &EnvironmentRules,
) -> Vec<String> {
    let all = of_command(inherited, rules, true, &[]);
    all.into_iter()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| !name.starts_with("GIT_CONFIG_"))
        .collect()
}

/// Returns the variables that pass to a verification, with the digests of their
/// values, which may be secrets.
pub(crate) fn digests(
    inherited: Vec<(OsString, OsString)>,
    rules: &EnvironmentRules,
) -> BTreeMap<String, String> {
    let hex = |text: &OsStr| canonical::sha256_hex(text.as_encoded_bytes());
    let all = of_command(inherited, rules, false, &[]).into_iter();
    all.map(|(name, value)| (name.to_string_lossy().into_owned(), hex(&value)))
        .collect()
}

/// Returns where a command looks for programs; `None` where that is up to its
/// shell.
pub(crate) fn path(
    inherited: Vec<(OsString, OsString)>,
    rules: &EnvironmentRules,
) -> Option<OsString> {
    let all = of_command(inherited, rules, false, &[]);
    let path = all.into_iter().find(|(name, _)| name == "PATH");
    path.map(|(_, value)| value)
        .filter(|value| !value.is_empty())
}

/// Git's own maintenance, which a commit starts in the background: it would be
/// ended with the step, and the locks that it leaves would stop it permanently.
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

    fn names(rules: &EnvironmentRules, is_work: bool) -> Vec<String> {
        let inherited = [
            "PATH",
            "HOME",
            "LC_ALL",
            "TOKEN",
            "OPENAI_API_KEY",
            "PREMATH_ISSUE_ID",
            "GIT_DIR",
            "NOTIFY_SOCKET",
            "WATCHDOG_USEC",
            "WATCHDOG_PID",
        ]
        .map(|name| (name.into(), "x".into()));
        of_command(
            inherited,
            rules,
            is_work,
            &[("PREMATH_STEP_ID", "s".into())],
        )
        .into_iter()
        .map(|(name, _)| name.into_string().unwrap())
        .filter(|name| !name.starts_with("GIT_CONFIG_"))
        .collect()
    }

    #[test]
    fn settings_for_git_are_added_to_those_that_are_there() {
        let own = [
            ("GIT_CONFIG_COUNT", "1".into()),
            ("GIT_CONFIG_KEY_0", "user.name".into()),
            ("GIT_CONFIG_VALUE_0", "x".into()),
        ];
        let all: BTreeMap<OsString, OsString> =
            of_command([], &EnvironmentRules::default(), false, &own)
                .into_iter()
                .collect();
        let of = |name: &str| all[OsStr::new(name)].to_str().unwrap();
        assert_eq!(of("GIT_CONFIG_COUNT"), "3");
        assert_eq!(of("GIT_CONFIG_KEY_0"), "user.name");
        assert_eq!(of("GIT_CONFIG_KEY_1"), "maintenance.auto");
        assert_eq!(of("GIT_CONFIG_VALUE_2"), "0");
    }

    #[test]
    fn lanes_have_ports_and_databases_of_their_own() {
        let of = |index| -> Vec<String> {
            let line = |(name, value): &(OsString, OsString)| {
                format!("{}={}", name.display(), value.display())
            };
            of_lane(index).iter().map(line).collect()
        };
        assert_eq!(
            of(2),
            [
                "PREMATH_LANE_INDEX=2",
                "PREMATH_DATABASE_SUFFIX=_lane2",
                "PREMATH_PORT_BASE=20100"
            ]
        );
        assert_eq!(of(120)[2], "PREMATH_PORT_BASE=31900");
        assert_eq!(of(121).len(), 2);
    }

    #[test]
    fn an_image_declares_what_is_the_systems() {
        let own = || {
            ["PATH", "JAVA_HOME", "CC", "LANG", "TZ"]
                .map(|name| (name.into(), "own".into()))
                .into_iter()
        };
        let rules = EnvironmentRules {
            allow: ["CC".to_owned()].into(),
            drop: BTreeSet::new(),
        };
        let of = |image: &[(&str, &str)]| {
            let image: Vec<(String, String)> = image
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let all = merged(own(), Some(&image), &rules);
            let line = |(name, value): &(OsString, OsString)| {
                format!("{}={}", name.display(), value.display())
            };
            all.iter().map(line).collect::<Vec<String>>().join(" ")
        };
        let bare = of(&[]);
        assert_eq!(
            bare,
            format!("CC=own LANG=own PATH={PATH_OF_IMAGES} TZ=own")
        );
        let declared = of(&[("PATH", "/x"), ("LANG", "C"), ("JAVA_HOME", "/j")]);
        assert_eq!(declared, "CC=own JAVA_HOME=/j LANG=C PATH=/x TZ=own");
        assert_eq!(merged(own(), None, &rules).len(), 5);
    }

    #[test]
    fn what_is_not_on_the_list_does_not_pass() {
        assert_eq!(
            names(&EnvironmentRules::default(), false),
            ["HOME", "LC_ALL", "PATH", "PREMATH_STEP_ID"]
        );
    }

    #[test]
    fn the_key_of_an_agent_passes_to_the_work_alone() {
        let names = names(&EnvironmentRules::default(), true);
        assert!(names.contains(&"OPENAI_API_KEY".to_owned()));
    }

    #[test]
    fn settings_add_names_and_take_them_out() {
        let rules = EnvironmentRules {
            allow: [
                "TOKEN",
                "GIT_DIR",
                "NOTIFY_SOCKET",
                "WATCHDOG_USEC",
                "WATCHDOG_PID",
            ]
            .map(String::from)
            .into(),
            drop: ["HOME".to_owned()].into(),
        };
        assert_eq!(
            names(&rules, false),
            ["LC_ALL", "PATH", "PREMATH_STEP_ID", "TOKEN"]
        );
    }
}
