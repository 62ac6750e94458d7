//! A headless Chromium, driven by its DevTools protocol over a pipe.

use crate::{PATIENCE, command, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Where a browser is looked for, beside `PATH`.
const PLACES: [&str; 2] = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];

/// The protocol is on the descriptors 3 and 4, which no parent can give without a
/// shell. Tests are not the user of a desktop: a sandbox of its own is not always
/// possible in the machines that they run on, and the pages are ours.
const START: &str = r#"exec "$0" --headless=new --no-sandbox --disable-gpu --no-first-run \
--disable-dev-shm-usage --remote-debugging-pipe --user-data-dir="$1" about:blank \
3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#;

/// A browser with one page; dropped, it is ended.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// What the page reported.
    events: Vec<Value>,
}

impl Browser {
    /// Finds a browser.
    pub fn program() -> Option<PathBuf> {
        PLACES.iter().map(PathBuf::from).find(|path| path.is_file())
    }

    /// Starts a browser that keeps its files in a folder.
    pub fn start(program: &Path, folder: &Path) -> Self {
        let mut started = command("sh");
        started.arg("-c").arg(START).arg(program).arg(folder);
        started.env("HOME", folder).env("XDG_RUNTIME_DIR", folder);
        started.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = started.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            stdin,
            messages: read(stdout),
            session: None,
            last: 0,
            events: Vec::new(),
        };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", target);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol, and returns its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.stdin
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        self.stdin.flush().unwrap();
        loop {
            let message = self
                .message()
                .unwrap_or_else(|| panic!("no answer to {method}"));
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn message(&self) -> Option<Value> {
        self.messages.recv_timeout(PATIENCE).ok()
    }

    /// Opens an address, and waits until it is loaded.
    #[track_caller]
    pub fn open(&mut self, address: &str) {
        let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        self.events.retain(|event| !is_loaded(event));
        self.call("Page.navigate", json!({"url": address}));
        while !self.events.iter().any(is_loaded) {
            let event = self
                .message()
                .unwrap_or_else(|| panic!("{address} is not loaded"));
            self.events.push(event);
        }
    }

    /// Evaluates an expression in the page.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression,
            "returnByValue": true,
            "awaitPromise": true,
        });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }

    /// Returns the text of the page, as a person sees it.
    #[track_caller]
    pub fn text(&mut self) -> String {
        let text = self.evaluate("document.body.innerText");
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true in the page, which may be another one
    /// meanwhile.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let parameters = json!({"expression": expression, "returnByValue": true});
        let is_so = until(PATIENCE, || {
            let result = self.call("Runtime.evaluate", parameters.clone());
            (result["result"]["value"] == true).then_some(())
        });
        if is_so.is_none() {
            panic!("never true: {expression}\n{}", self.text());
        }
    }

    /// Sends a key to what has the focus.
    #[track_caller]
    pub fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let parameters = json!({
                "type": kind, "key": key, "code": key, "text": text,
                "windowsVirtualKeyCode": code,
            });
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }

    /// Makes the window as wide and high as a screen.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Returns the errors that the page or its policy reported.
    pub fn errors(&self) -> Vec<&Value> {
        let is_error = |event: &&Value| {
            event["method"] == "Runtime.exceptionThrown"
                || (event["method"] == "Log.entryAdded"
                    && event["params"]["entry"]["level"] == "error")
        };
        self.events.iter().filter(is_error).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        let _ = self
            .stdin
            .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.stdin.flush();
        let ended = until(Duration::from_secs(10), || {
            self.child.try_wait().ok().flatten()
        });
        if ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Reads messages on a thread, until the browser ends.
fn read(stdout: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let parts = BufReader::new(stdout).split(0);
        for part in parts.map_while(Result::ok) {
            let Ok(message) = serde_json::from_slice(&part) else {
                continue;
            };
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    receiver
}
