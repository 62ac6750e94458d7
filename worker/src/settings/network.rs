//! `[network]`: which hosts commands may reach, for the work and for the
//! verification.

use super::keys::NetworkKeys;
use super::values::{Hosts, PortList};
use super::{FileSettings, LoopFlags, SettingsError};
use premath_kernel::policy::network::{
    HostList, NetworkChoice, NetworkPhase, NetworkPolicy, NetworkWord, Ports, choose, enforces,
};
use premath_kernel::policy::sandbox::SandboxMode;

/// Which hosts commands may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The policies by their words, and whether they are enforced.
    pub choice: NetworkChoice,
    /// The policy of the work.
    pub work: NetworkPolicy,
    /// The policy of the verification.
    pub verify: NetworkPolicy,
}

impl Network {
    /// Takes the policies of flags, environment or file, or the defaults.
    pub(super) fn resolve(
        flags: &LoopFlags,
        file: &FileSettings,
        mode: SandboxMode,
    ) -> Result<Self, SettingsError> {
        let asked = Asked {
            work: word(
                "--network-work",
                flags.network_work.as_deref(),
                super::variable_of("PREMATH_NETWORK_WORK"),
            )?,
            verify: word(
                "--network-verify",
                flags.network_verify.as_deref(),
                super::variable_of("PREMATH_NETWORK_VERIFY"),
            )?,
        };
        asked.settled(&file.network, mode, enforces(mode))
    }

    /// Returns whether any commands use the machine's network as it is.
    pub(crate) fn is_open(&self) -> bool {
        let mut policies = [&self.work, &self.verify].into_iter();
        policies.any(|policy| *policy == NetworkPolicy::Open)
    }

    /// Returns the policy of commands.
    pub(crate) const fn policy(&self, phase: NetworkPhase) -> &NetworkPolicy {
        match phase {
            NetworkPhase::Work => &self.work,
            NetworkPhase::Verify => &self.verify,
        }
    }
}

/// Reads a word of the command line, or else of the environment.
fn word(
    name: &'static str,
    flag: Option<&str>,
    variable: Option<String>,
) -> Result<Option<NetworkWord>, SettingsError> {
    let variable = variable.filter(|text| !text.trim().is_empty());
    let Some(text) = flag.map(str::to_owned).or(variable) else {
        return Ok(None);
    };
    let word = text.trim().parse();
    word.map(Some).map_err(|error| SettingsError::Value {
        name,
        detail: format!("{error}"),
    })
}

/// The policies of command line and environment.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    work: Option<NetworkWord>,
    verify: Option<NetworkWord>,
}

impl Asked {
    fn settled(
        self,
        table: &NetworkKeys,
        mode: SandboxMode,
        is_enforced: bool,
    ) -> Result<Network, SettingsError> {
        let work = self.work.or(table.work.map(|word| word.0));
        let verify = self.verify.or(table.verify.map(|word| word.0));
        let choice = choose(work, verify, mode, is_enforced)?;
        let ports = table.ports.as_ref().map(PortList::ports);
        let ports: Ports = ports.unwrap_or_default();
        let policy = |phase: NetworkPhase, word, hosts: &Option<Hosts>| {
            let hosts = hosts.clone().map_or_else(Vec::new, |hosts| hosts.0);
            let ports = ports.clone();
            let policy = NetworkPolicy::of(word, HostList { hosts, ports });
            policy.map_err(|error| SettingsError::Value {
                name: match phase {
                    NetworkPhase::Work => "`work` of [network]",
                    NetworkPhase::Verify => "`verify` of [network]",
                },
                detail: format!("{error} (`{}`)", phase.list_key()),
            })
        };
        Ok(Network {
            choice,
            work: policy(NetworkPhase::Work, choice.work, &table.allow)?,
            verify: policy(NetworkPhase::Verify, choice.verify, &table.verify_allow)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use premath_kernel::policy::network::Target;
    use std::path::Path;

    fn parse(text: &str) -> Result<NetworkKeys, String> {
        let text = format!("[network]\n{text}\n");
        let file = FileSettings::parse(&text, Path::new("h.toml"));
        file.map(|file| file.network)
            .map_err(|error| error.to_string())
    }

    fn settled(asked: Asked, text: &str) -> Result<Network, SettingsError> {
        asked.settled(&parse(text).unwrap(), SandboxMode::Landlock, true)
    }

    fn admits(policy: &NetworkPolicy, target: &str) -> bool {
        policy.consider(&Target::parse(target).unwrap()).is_ok()
    }

    #[test]
    fn the_default_is_public_hosts_for_work_and_registries_for_verification() {
        let network = settled(Asked::default(), "").unwrap();
        assert!(admits(&network.work, "a.example:443"));
        assert!(!admits(&network.work, "a.example:25"));
        assert!(!admits(&network.verify, "a.example:443"));
        assert!(admits(&network.verify, "pypi.org:443"));
        assert_eq!(network.choice.warning(), None);
    }

    #[test]
    fn the_lists_and_ports_belong_to_their_policies() {
        let text = "work = \"allow\"\nallow = [\"a.example\"]\nverify_allow = \"b.example:81\"\nports = [8443]";
        let network = settled(Asked::default(), text).unwrap();
        for (phase, target, admitted) in [
            (NetworkPhase::Work, "a.example:8443", true),
            (NetworkPhase::Work, "a.example:443", false),
            (NetworkPhase::Work, "b.example:81", false),
            (NetworkPhase::Verify, "b.example:81", true),
            (NetworkPhase::Verify, "a.example:8443", false),
        ] {
            assert_eq!(admits(network.policy(phase), target), admitted, "{target}");
        }
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let asked = Asked {
            work: Some(NetworkWord::Off),
            verify: None,
        };
        let network = settled(asked, "work = \"open\"\nverify = \"open\"").unwrap();
        assert_eq!(network.work, NetworkPolicy::Off);
        assert_eq!(network.verify, NetworkPolicy::Open);
        assert_eq!(
            word("--network-work", Some(" off "), Some("open".to_owned())).unwrap(),
            Some(NetworkWord::Off)
        );
        assert_eq!(
            word("--network-work", None, Some(" ".to_owned())).unwrap(),
            None
        );
        let error = word("--network-work", Some("pubilc"), None).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("--network-work: invalid network policy `pubilc`"),
            "{error}"
        );
        assert!(error.ends_with("did you mean `public`?"), "{error}");
    }

    #[test]
    fn a_configured_policy_that_is_not_enforced_refuses_the_batch() {
        let unenforced = |text: &str| {
            let table = parse(text).unwrap();
            Asked::default().settled(&table, SandboxMode::Landlock, false)
        };
        for text in [
            "verify = \"off\"",
            "work = \"allow\"\nallow = [\"a.example\"]",
        ] {
            let error = unenforced(text).unwrap_err();
            assert_eq!(error.exit_code(), crate::exit::REFUSED);
            let classes = error.refusal_classes();
            assert_eq!(classes[0].as_str(), "sandbox_unavailable");
            assert!(
                error.to_string().contains("the sandbox `landlock`"),
                "{error}"
            );
            assert!(error.hint().unwrap().contains("open"));
        }
        let network = unenforced("allow = [\"a.example\"]").unwrap();
        assert_eq!(network.work, NetworkPolicy::Open);
        assert!(network.choice.warning().is_some());
    }

    #[test]
    fn a_wrong_value_is_named_with_its_line() {
        for (text, said) in [
            ("work = \"pubilc\"", "did you mean `public`?"),
            ("wrok = \"off\"", "unknown key `wrok`"),
            ("allow = [\"https://a.example\"]", "leave out the scheme"),
            ("ports = [0]", "a whole number from 1 to 65535"),
            ("ports = [65536]", "a whole number from 1 to 65535"),
            ("ports = \"443\"", "expected a sequence"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("h.toml:2: "), "{error}");
            assert!(error.contains(said), "{error}");
        }
        let error = settled(Asked::default(), "verify = \"allow\"").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`verify` of [network]: the policy `allow` has no hosts; list some, or use `off` \
            (`verify_allow`)"
        );
    }
}
