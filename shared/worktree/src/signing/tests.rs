#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the tests hold signatures against those of git and ssh-keygen"
)]

use super::key::key_of_git;
use super::*;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";

struct Scratch {
    folder: tempfile::TempDir,
    git: Repository,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path().join("repo")).unwrap();
        Self { folder, git }
    }

    /// Makes a key; the same number makes the same key.
    fn key(&self, number: u8) -> PathBuf {
        let pair = ssh_key::private::Ed25519Keypair::from_seed(&[number; 32]);
        let key = PrivateKey::from(pair);
        let path = self.folder.path().join(format!("key-{number}"));
        fs::write(&path, key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let public = key.public_key().to_openssh().unwrap();
        fs::write(self.folder.path().join(format!("key-{number}.pub")), public).unwrap();
        path
    }

    fn commit(&self, signer: Option<&Signer>, message: &str) -> Oid {
        let tree = self.git.treebuilder(None).unwrap().write().unwrap();
        let tree = self.git.find_tree(tree).unwrap();
        let author = Signature::now("A \"Quoted\" Näme", "a@localhost").unwrap();
        write_commit(&self.git, signer, &author, message, &tree, &[]).unwrap()
    }

    fn verify(&self, commit: Oid, key: u8) -> Option<bool> {
        if Command::new("ssh-keygen").arg("-?").output().is_err() {
            eprintln!("skipped: no ssh-keygen here");
            return None;
        }
        let public = self.folder.path().join(format!("key-{key}.pub"));
        let public = fs::read_to_string(public).unwrap();
        let allowed = self.folder.path().join("allowed");
        fs::write(&allowed, format!("somebody {public}\n")).unwrap();
        let output = Command::new("git")
            .arg("-C")
            .arg(self.git.workdir().unwrap())
            .arg("-c")
            .arg(format!("gpg.ssh.allowedSignersFile={}", allowed.display()))
            .args(["verify-commit", &commit.to_string()])
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        Some(output.status.success())
    }
}

#[test]
fn a_signed_commit_is_one_for_git_and_for_us() {
    let scratch = Scratch::new();
    let signer = Signer::load(&scratch.key(1)).unwrap();
    scratch.key(2);
    let commit = scratch.commit(Some(&signer), "subject\n\nStep: s\n");
    assert_ne!(scratch.verify(commit, 1), Some(false));
    assert_ne!(scratch.verify(commit, 2), Some(true));
    let CommitSignature::Good(key) = signature_of(&scratch.git, commit).unwrap() else {
        panic!("not good");
    };
    assert_eq!(key.key_data(), signer.public_key().key_data());
    let found = scratch.git.find_commit(commit).unwrap();
    assert_eq!(found.message(), Ok("subject\n\nStep: s\n"));
    let plain = scratch.commit(None, "subject");
    assert_eq!(
        signature_of(&scratch.git, plain).unwrap(),
        CommitSignature::None
    );
}

#[test]
fn a_signature_of_another_commit_or_none_at_all_is_bad() {
    let scratch = Scratch::new();
    let signer = Signer::load(&scratch.key(1)).unwrap();
    let one = scratch.commit(Some(&signer), "one");
    let (signature, _) = scratch.git.extract_signature(&one, None).unwrap();
    let signature = std::str::from_utf8(&signature).unwrap().to_owned();
    let tree = scratch.git.find_commit(one).unwrap().tree().unwrap();
    let author = Signature::now("a", "a@localhost").unwrap();
    let other = scratch
        .git
        .commit_create_buffer(&author, &author, "other", &tree, &[])
        .unwrap();
    let other = std::str::from_utf8(&other).unwrap();
    let judge = |signature: &str| {
        let id = scratch.git.commit_signed(other, signature, None).unwrap();
        signature_of(&scratch.git, id).unwrap()
    };
    assert_eq!(
        judge(&signature),
        CommitSignature::Bad("is not over this commit".to_owned())
    );
    let foreign = "-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----";
    assert_eq!(judge(foreign), CommitSignature::Foreign);
    let cut = signature.lines().take(2).collect::<Vec<_>>().join("\n");
    assert!(matches!(judge(&cut), CommitSignature::Bad(_)));
    // One for another purpose.
    let file = signer
        .key
        .sign("file", HashAlg::Sha512, other.as_bytes())
        .unwrap();
    let file = file.to_pem(LineEnding::LF).unwrap();
    assert!(matches!(judge(file.trim_end()), CommitSignature::Bad(_)));
}

#[test]
fn a_key_that_cannot_be_used_is_named_with_what_to_do() {
    let scratch = Scratch::new();
    let path = scratch.key(1);
    let load = || {
        let error = Signer::load(&path).unwrap_err();
        (error.to_string(), error.hint().unwrap())
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let (error, hint) = load();
    assert!(
        error.ends_with("can be read by others: its mode is 640"),
        "{error}"
    );
    assert!(hint.starts_with("chmod 600 "), "{hint}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, format!("{KEY}\nnot base64\n")).unwrap();
    assert!(load().0.starts_with("cannot use the signing key"));
    fs::remove_file(&path).unwrap();
    assert!(load().0.starts_with("cannot read the signing key"));
    fs::create_dir(&path).unwrap();
    assert!(load().0.starts_with("cannot read the signing key"));
}

#[test]
fn an_encrypted_key_is_refused_and_its_public_half_is_known() {
    // Made by `ssh-keygen -t ed25519 -N secret`.
    let text = include_str!("encrypted.key");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let error = Signer::load(&path).unwrap_err();
    assert!(matches!(error, SigningError::Encrypted { .. }), "{error}");
    assert!(error.hint().unwrap().contains("passphrase"));
    assert!(public_half(&path).is_ok());
}

#[test]
fn the_key_of_gits_configuration_is_a_private_keys_file() {
    let scratch = Scratch::new();
    let mut config = scratch
        .git
        .config()
        .unwrap()
        .open_level(git2::ConfigLevel::Local)
        .unwrap();
    let message = |config: &Config| key_of_git(config).unwrap_err().to_string();
    use git2::Config;
    assert!(message(&config).contains("`gpg.format` is not set; expected `ssh`"));
    config.set_str("gpg.format", "ssh").unwrap();
    assert!(message(&config).contains("`user.signingkey` is not set"));
    config
        .set_str("user.signingkey", "ssh-ed25519 AAAA")
        .unwrap();
    assert!(message(&config).contains("in an SSH agent"));
    for text in ["/keys/id", "/keys/id.pub"] {
        config.set_str("user.signingkey", text).unwrap();
        assert_eq!(key_of_git(&config).unwrap(), Path::new("/keys/id"));
    }
}

#[test]
fn allowed_signers_admit_by_key_purpose_and_time() {
    let scratch = Scratch::new();
    let [one, two] = [1, 2].map(|number| Signer::load(&scratch.key(number)).unwrap());
    let public = |signer: &Signer| signer.public_key().to_openssh().unwrap();
    let at: jiff::Timestamp = "2026-03-05T10:00:00Z".parse().unwrap();
    let judge = |line: &str, signer: &Signer| {
        let allowed = AllowedSigners::parse(&format!("# ours\n\n{line}\n")).unwrap();
        allowed.judge(signer.public_key(), at)
    };
    let key = public(&one);
    let by = |name: &str| Signed::By(name.to_owned());
    assert_eq!(judge(&format!("a@b {key}"), &one), by("a@b"));
    assert!(matches!(
        judge(&format!("a@b {key}"), &two),
        Signed::Refused(_)
    ));
    for (options, good) in [
        ("namespaces=\"git\"", true),
        ("namespaces=\"file,git\"", true),
        ("namespaces=\"file\"", false),
        ("valid-after=\"20260305\"", true),
        ("valid-after=\"202603051001Z\"", false),
        ("valid-before=\"20260305\"", false),
        (
            "valid-after=\"20260101\",valid-before=\"20260401120000Z\"",
            true,
        ),
        ("cert-authority", false),
    ] {
        let found = judge(&format!("\"x y\" {options} {key} a comment"), &one);
        assert_eq!(found == by("x y"), good, "{options}");
    }
    for (line, expected) in [
        (
            "a",
            "line 1: it must be principals, options and a public key",
        ),
        (
            "a colour=\"red\" ssh-ed25519 AAAA",
            "line 1: unknown option `colour`",
        ),
        (
            "a ssh-ed25519 AAAA",
            "line 1: the public key cannot be read",
        ),
        (
            "a valid-after=\"soon\" ssh-ed25519 AAAA",
            "line 1: invalid time `soon`",
        ),
    ] {
        let error = AllowedSigners::parse(line).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert_eq!(
        AllowedSigners::only(one.public_key().clone(), "us").judge(one.public_key(), at),
        by("us")
    );
}

#[test]
fn the_settings_name_one_source_of_the_key() {
    let of = |key, use_git, home: Option<&str>| {
        KeySource::of(key, use_git, home.map(Path::new), Path::new("/repo"))
    };
    let file = |path: &str| Ok(Some(KeySource::File(path.into())));
    assert_eq!(of(None, false, None), Ok(None));
    assert_eq!(of(None, true, None), Ok(Some(KeySource::Git)));
    assert_eq!(of(Some("~/.ssh/id"), false, Some("/h")), file("/h/.ssh/id"));
    assert_eq!(of(Some("keys/id"), false, None), file("/repo/keys/id"));
    assert_eq!(of(Some(" /k "), false, None), file("/k"));
    for (key, use_git) in [(Some("~/x"), false), (Some(" "), false), (Some("x"), true)] {
        assert!(of(key, use_git, None).is_err(), "{key:?}");
    }
}
