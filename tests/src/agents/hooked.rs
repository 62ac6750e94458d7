//! The hooks of a recorded run: a socket that takes their events.

use premath_evidence::{Agent, HookJournal, HookPlace, HookWiring};
use premath_kernel::policy::turn::TurnPolicy;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

/// The most bytes of an event or an answer.
const LARGEST: u64 = 32 << 20;

/// What a command has in it that the policy of recordings denies.
const FORBIDDEN: &str = "forbidden";

/// A socket that takes the events of one run, and answers by a policy.
#[derive(Debug)]
pub(super) struct HookSocket {
    /// Its folder ends with it; the path of a socket is short.
    _folder: tempfile::TempDir,
    path: PathBuf,
    events: Arc<Mutex<Vec<String>>>,
}

impl HookSocket {
    /// Opens one for an agent that works in a folder.
    pub(super) fn open(agent: Agent, worktree: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let events = Arc::default();
        let taken = Arc::clone(&events);
        let journal = HookJournal::new(agent, policy(), &worktree.to_string_lossy());
        let journal = Arc::new(Mutex::new(journal));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (taken, journal) = (Arc::clone(&taken), Arc::clone(&journal));
                // A hook that went away has no answer.
                thread::spawn(move || take(&stream, &taken, &journal).ok());
            }
        });
        Self {
            _folder: folder,
            path,
            events,
        }
    }

    /// Wires the hooks of an agent; the files of the wiring are in `folder`. The
    /// running program is the hook program too.
    pub(super) fn wire(&self, agent: Agent, folder: &Path) -> HookWiring {
        fs::create_dir_all(folder).unwrap();
        let program = std::env::current_exe().unwrap();
        let wiring = (agent.spec().hooks.wiring)(&HookPlace {
            program: &program.to_string_lossy(),
            mode: Some(premath_hook::MODE),
            socket: &self.path.to_string_lossy(),
            folder: &folder.to_string_lossy(),
            name: "premath-recorded",
        });
        for file in &wiring.files {
            fs::write(folder.join(file.name), &file.content).unwrap();
        }
        wiring
    }

    /// Returns the events so far, a line each, in the order in which they came.
    pub(super) fn events(&self) -> String {
        let events = self.events.lock().unwrap();
        events.iter().map(|event| format!("{event}\n")).collect()
    }
}

/// Takes one event, and answers.
fn take(
    mut stream: &UnixStream,
    taken: &Mutex<Vec<String>>,
    journal: &Mutex<HookJournal>,
) -> io::Result<()> {
    let event = read(&mut stream)?;
    let answer = {
        // In one order for both.
        let mut taken = taken.lock().unwrap();
        taken.push(String::from_utf8_lossy(event.trim_ascii()).into_owned());
        journal.lock().unwrap().take(&event).1
    };
    write(&mut stream, answer.as_bytes())
}

/// The embedded policy, with one more rule.
fn policy() -> Arc<TurnPolicy> {
    let mut document: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    let rule = json!({
        "ruleId": "no_forbidden",
        "tool": "shell",
        "arguments": [format!("*{FORBIDDEN}*")],
        "decision": "deny",
        "reason": "this file is not to be made",
    });
    let rules = document["tools"].as_array_mut().unwrap();
    rules.insert(0, rule);
    let digest = TurnPolicy::digest(document.to_string().as_bytes()).unwrap();
    document["policyDigest"] = digest.into();
    Arc::new(TurnPolicy::parse(document.to_string().as_bytes()).unwrap())
}

/// Reads a length in four bytes, and so many bytes.
fn read(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u64::from(u32::from_be_bytes(length)).min(LARGEST);
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), bytes].concat())?;
    stream.flush()
}
