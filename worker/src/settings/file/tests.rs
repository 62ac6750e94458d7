use super::*;
use crate::settings::keys::Table;
use crate::settings::rules::OnNoChange;
use std::time::Duration;

fn error(text: &str) -> String {
    FileSettings::parse(text, Path::new("h.toml"))
        .unwrap_err()
        .to_string()
}

#[test]
fn an_unknown_key_suggests_the_near_one_and_names_its_line() {
    let hinted = |text: &str| {
        let error = FileSettings::parse(text, Path::new("h.toml")).unwrap_err();
        (error.to_string(), error.hint().unwrap())
    };
    assert_eq!(
        hinted("[batch]\nwork_comd = \"x\"\n"),
        (
            "h.toml:2: unknown key `work_comd`".to_owned(),
            "did you mean `work_cmd`?".to_owned()
        )
    );
    assert_eq!(
        hinted("\n[supervison]\n"),
        (
            "h.toml:2: unknown key `supervison`".to_owned(),
            "did you mean `supervision`?".to_owned()
        )
    );
    assert!(error("[env]\nfrobnicate = 1\n").contains("expected one of allow, drop"));
}

#[test]
fn a_wrong_type_says_what_would_be_right() {
    for (text, detail) in [
        (
            "[landing]\nspeculation = -1\n",
            "`speculation`: invalid value: integer `-1`, expected a whole number from 0",
        ),
        (
            "[verify]\nflaky_reruns = \"a\"\n",
            "`flaky_reruns`: invalid type: string \"a\", expected a whole number from 0",
        ),
        (
            "[batch]\non_failure = 3\n",
            "`on_failure`: invalid type: integer `3`, expected `continue` or `stop`",
        ),
    ] {
        assert_eq!(error(text), format!("h.toml:2: {detail}"));
    }
}

#[test]
fn a_wrong_value_says_what_would_be_right() {
    assert_eq!(
        error("[coordinator]\nrounds = 0\n"),
        "h.toml:2: `rounds`: invalid value: integer `0`, expected a whole number above 0"
    );
    assert!(error("[supervision]\nstep_limit = \"45 moons\"").contains("such as \"45m\""));
    assert_eq!(
        error("[batch]\nwork_cmd = 3"),
        "h.toml:2: `work_cmd`: invalid type: integer `3`, expected a string"
    );
    assert_eq!(
        error("[batch]\non_failure = \"halt\""),
        "h.toml:2: `on_failure`: unknown variant `halt`, expected `continue` or `stop`"
    );
    for (text, found) in [("batch = 3", "integer"), ("batch = [\"work\"]", "array")] {
        let expected = format!("h.toml:1: `batch`: invalid type: {found}, expected a table");
        assert_eq!(error(text), expected);
    }
    for path in ["", ".", "../etc", "/etc/passwd", "a/../b"] {
        let expected = format!(
            "h.toml:2: `setup_inputs`: `{path}` is not a path in the repository; expected one \
             from its root, such as \"package-lock.json\""
        );
        let text = format!("[worktrees]\nsetup_inputs = [\"a.lock\", \"{path}\"]\n");
        assert_eq!(error(&text), expected);
    }
    let text = "[worktrees]\nsetup_inputs = [\"./a.lock\", \"b/./c/\"]\n";
    let settings = FileSettings::parse(text, Path::new("h.toml")).unwrap();
    let inputs = [PathBuf::from("a.lock"), PathBuf::from("b/c")];
    assert_eq!(settings.worktrees.setup_inputs, inputs);
    assert!(error("[batch\n").starts_with("h.toml:1: "));
    for (text, detail) in [
        ("[batch]\n[batch]\n", "h.toml:2: duplicate key `batch`"),
        (
            "[env]\ndrop = []\ndrop = []\n",
            "h.toml:3: duplicate key `drop`",
        ),
    ] {
        assert_eq!(error(text), detail);
    }
}

#[test]
fn every_known_key_is_read() {
    let text = r#"
[batch]
work_cmd = "w"
issue_types = ["task", "bug"]
labels = "a, b"
lease_ttl = "90s"
on_failure = "stop"
on_no_change = "refuse"
[coordinator]
worktrees = ["../a"]
rounds = 3
drain_grace = "1m"
[supervision]
output_cap_bytes = 1_000
[backoff]
fixed_short = "1s"
exponential_short = { base = "1s", cap = "4s" }
[env]
allow = ["PATH"]
"#;
    let settings = FileSettings::parse(text, Path::new("h.toml")).unwrap();
    assert_eq!(settings.batch.labels.unwrap().0, ["a", "b"]);
    assert_eq!(settings.batch.lease_ttl.unwrap().0, Duration::from_secs(90));
    assert_eq!(settings.batch.on_no_change, Some(OnNoChange::Refuse));
    assert_eq!(settings.limits.output_cap, 1_000);
    assert_eq!(settings.coordinator.rounds, Some(3));
    assert_eq!(
        settings.backoff.wait("exponential_short", 9),
        Duration::from_secs(4)
    );
    for table in Table::all() {
        for key in table.names() {
            let text = format!("[{}]\n{key} = [{{ x = true }}]\n", table.name);
            let error = FileSettings::parse(&text, Path::new("h")).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(&format!("h:2: `{key}`: ")), "{error}");
        }
    }
}

#[test]
fn an_unknown_landing_mode_is_named_with_its_line() {
    let text = "[landing]\ntarget = \"t\"\nmode = \"merg\"\n";
    let error = FileSettings::parse(text, Path::new("h")).unwrap_err();
    let said = error.to_string();
    for part in ["h", "3", "`merg`", "`merge`, `branch` or `none`"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn the_strategy_of_landings_is_refused_with_its_line() {
    for word in ["merge", "rebase", "squash"] {
        let error = error(&format!(
            "[landing]\ntarget = \"t\"\nstrategy = \"{word}\"\n"
        ));
        assert!(
            error.starts_with("h.toml:3: `strategy` is no longer supported")
                && error.ends_with("delete the key"),
            "{error}"
        );
    }
    let landing = Table::all().iter().find(|table| table.name == "landing");
    assert!(landing.unwrap().names().all(|key| key != "strategy"));
}

#[test]
fn worlds_are_names_and_paths() {
    let parse = |text: &str| FileSettings::parse(text, Path::new("h"));
    let worlds = parse("[worlds]\ndocs = \"../docs\"\n").unwrap().worlds;
    assert_eq!(worlds["docs"], PathBuf::from("../docs"));
    for text in ["docs = \" \"", "\"\" = \"../docs\"", "\" a\" = \"../docs\""] {
        let error = error(&format!("[worlds]\n{text}\n"));
        assert!(error.starts_with("h.toml:2: a world is a name"), "{error}");
    }
    let error = error("[worlds]\ndocs = 1\n");
    assert!(
        error.starts_with("h.toml:2: `docs`: invalid type: integer"),
        "{error}"
    );
}

#[test]
fn a_number_that_does_not_fit_is_shown() {
    for (text, said) in [
        (
            "[worktrees]\ncount = -1\n",
            "`count`: invalid value: integer `-1`, expected a whole number from 1 to 1000",
        ),
        (
            "[backoff]\njitter_percent = 101\n",
            "`jitter_percent`: invalid value: integer `101`, expected a whole number from 0 to 100",
        ),
        (
            "[worktrees]\ncount = \"2\"\n",
            "`count`: invalid type: string \"2\", expected a whole number from 1 to 1000",
        ),
    ] {
        let error = FileSettings::parse(text, Path::new("h")).unwrap_err();
        assert_eq!(error.to_string(), format!("h:2: {said}"));
    }
}
