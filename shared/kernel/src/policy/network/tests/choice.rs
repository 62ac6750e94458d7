//! Words, and which policies a batch has.

use super::*;
use crate::policy::sandbox::SandboxMode;

#[test]
fn a_word_reads_back_and_an_unknown_one_suggests_the_near_one() {
    for word in NetworkWord::ALL {
        assert_eq!(word.as_str().parse(), Ok(word));
    }
    let message = |text: &str| text.parse::<NetworkWord>().unwrap_err().to_string();
    let known = "expected `off`, `allow`, `registries`, `public` or `open`";
    assert_eq!(
        message("nothing"),
        format!("invalid network policy `nothing`: {known}")
    );
    for (text, near) in [
        ("registry", "registries"),
        ("Public", "public"),
        ("pubilc", "public"),
        ("opne", "open"),
        ("of", "off"),
    ] {
        let suggestion =
            format!("invalid network policy `{text}`: {known}; did you mean `{near}`?");
        assert_eq!(message(text), suggestion);
    }
}

#[test]
fn a_policy_that_cannot_be_enforced_is_refused_and_a_default_is_open_with_a_warning() {
    use NetworkWord::{Allow, Off, Open, Public, Registries};
    let mode = SandboxMode::Landlock;
    let enforced = choose(None, Some(Off), mode, true).unwrap();
    assert_eq!((enforced.work, enforced.verify), (Public, Off));
    assert_eq!(choose(None, None, mode, true).unwrap().verify, Registries);
    assert_eq!(enforced.warning(), None);

    let open = choose(None, None, mode, false).unwrap();
    assert_eq!((open.work, open.verify), (Open, Open));
    let warning = open.warning().unwrap();
    assert!(
        warning.contains("the sandbox `landlock` cannot"),
        "{warning}"
    );
    assert!(
        choose(Some(Open), None, mode, false)
            .unwrap()
            .warning()
            .is_some()
    );
    let asked = choose(Some(Open), Some(Open), mode, false).unwrap();
    assert_eq!(asked.warning(), None);

    for word in [Off, Allow, Registries, Public] {
        let error = choose(None, Some(word), mode, false).unwrap_err();
        assert_eq!(error.class().as_str(), "sandbox_unavailable");
        assert_eq!((error.key, error.word), ("verify", word));
        assert!(error.hint().contains("--network-verify open"));
        assert!(choose(Some(word), Some(Open), mode, false).is_err());
    }
    for mode in [SandboxMode::Landlock, SandboxMode::None] {
        assert!(!enforces(mode));
    }
    for mode in [SandboxMode::Namespaces, SandboxMode::Container] {
        assert!(enforces(mode));
    }
}

#[test]
fn the_variables_point_programs_at_the_proxy() {
    let variables = variables(4321);
    for (name, value) in [
        ("HTTPS_PROXY", "http://127.0.0.1:4321"),
        ("http_proxy", "http://127.0.0.1:4321"),
        ("NO_PROXY", "localhost,127.0.0.1,::1"),
        ("NODE_USE_ENV_PROXY", "1"),
    ] {
        assert!(variables.contains(&(name, value.to_owned())), "{name}");
    }
}
