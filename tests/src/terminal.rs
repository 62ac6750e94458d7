//! A program on a pseudo terminal of its own, and what a person would see there.

use crate::wait::{PATIENCE, until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Gives a program a session, and its stdin as the terminal of that.
const SETSID: &str = "/usr/bin/setsid";

/// How often the reader looks whether it is to end.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A program that runs on a terminal; dropped, it is killed.
pub struct Terminal {
    child: Child,
    master: File,
    slave: File,
    /// How the terminal was set before the program started.
    before: String,
    seen: Arc<Mutex<Seen>>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

/// What was printed, and what it looks like.
struct Seen {
    bytes: Vec<u8>,
    screen: vt100::Parser,
}

impl Terminal {
    /// Starts a command, whose environment is only that which it was given.
    pub(crate) fn start(command: &Command, (columns, rows): (u16, u16)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a pseudo terminal");
        grantpt(&master).expect("the terminal is ours");
        unlockpt(&master).expect("the terminal is ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let name = name.into_string().expect("it is text");
        let slave = OpenOptions::new().read(true).write(true).open(&name);
        let slave = slave.expect("the terminal opens");
        let master = File::from(master);
        let mut started = crate::command(Path::new(SETSID));
        started
            .env_clear()
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args())
            .env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => started.env(name, value),
                None => started.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            started.current_dir(folder);
        }
        let end = || slave.try_clone().expect("a descriptor");
        started.stdin(end()).stdout(end()).stderr(end());
        let seen = Arc::new(Mutex::new(Seen {
            bytes: Vec::new(),
            screen: vt100::Parser::new(size(rows), size(columns), 0),
        }));
        let is_over = Arc::new(AtomicBool::new(false));
        let reader = reader(&master, &seen, &is_over);
        let before = settings(&slave);
        let mut terminal = Self {
            before,
            child: started.spawn().expect("the program starts"),
            master,
            slave,
            seen,
            is_over,
            reader: Some(reader),
        };
        terminal.resize(columns, rows);
        terminal
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let window = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let mut seen = self.seen.lock().unwrap();
        seen.screen.screen_mut().set_size(size(rows), size(columns));
        tcsetwinsize(&self.master, window).expect("a terminal has a size");
    }

    /// Returns the rows that a person sees, without spaces at their ends.
    pub fn rows(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let screen = seen.screen.screen();
        let (_, columns) = screen.size();
        let rows = screen.rows(0, columns.get());
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    /// Returns everything that was printed.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    /// Waits until a row has a text.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        let shown = until(PATIENCE, || {
            let rows = self.rows();
            rows.iter().any(|row| row.contains(text)).then_some(())
        });
        assert!(
            shown.is_some(),
            "no {text:?} in\n{}\nprinted: {:?}",
            self.rows().join("\n"),
            self.printed()
        );
    }

    /// Types keys.
    pub fn types(&mut self, keys: &str) {
        let typed = self.master.write_all(keys.as_bytes());
        typed.expect("the terminal takes keys");
    }

    /// Returns whether a program has the whole screen and every key.
    pub fn is_taken(&self) -> bool {
        let modes = tcgetattr(&self.slave)
            .expect("it is a terminal")
            .local_modes;
        let is_raw = !modes.contains(LocalModes::ICANON | LocalModes::ECHO);
        let seen = self.seen.lock().unwrap();
        is_raw || seen.screen.screen().alternate_screen()
    }

    /// Returns whether the terminal is set as it was before the program: its modes,
    /// its special keys and its speed.
    pub fn is_set_as_before(&self) -> bool {
        settings(&self.slave) == self.before
    }

    /// Returns whether the cursor is hidden.
    pub fn hides_cursor(&self) -> bool {
        self.seen.lock().unwrap().screen.screen().hide_cursor()
    }

    /// Returns the process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends the program a signal, and only it.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the process is there");
    }

    /// Closes the terminal, as a connection that breaks does.
    pub fn hangs_up(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends");
        }
        // The last descriptors of the other end.
        let null = || OpenOptions::new().read(true).write(true).open("/dev/null");
        self.master = null().expect("it is there");
        self.slave = null().expect("it is there");
    }

    /// Waits until the program ends.
    #[track_caller]
    pub fn ends(&mut self) -> ExitStatus {
        let ended = until(PATIENCE, || self.child.try_wait().expect("a child"));
        let status = ended.unwrap_or_else(|| panic!("it runs:\n{}", self.rows().join("\n")));
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends");
        }
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Returns everything that `tcgetattr` reports.
fn settings(terminal: &File) -> String {
    format!("{:?}", tcgetattr(terminal).expect("it is a terminal"))
}

fn size(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a terminal has a size")
}

/// Reads what is printed, until the end is announced and nothing more is there.
fn reader(master: &File, seen: &Arc<Mutex<Seen>>, is_over: &Arc<AtomicBool>) -> JoinHandle<()> {
    let mut master = master.try_clone().expect("a descriptor");
    let (seen, is_over) = (Arc::clone(seen), Arc::clone(is_over));
    std::thread::spawn(move || {
        let mut buffer = [0; 8 << 10];
        loop {
            let is_last = is_over.load(Ordering::Relaxed);
            let mut watched = [PollFd::new(&master, PollFlags::IN)];
            let ready = poll(&mut watched, Some(&TICK)).unwrap_or(0);
            if ready == 0 && is_last {
                return;
            }
            if ready == 0 {
                continue;
            }
            match master.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    let mut seen = seen.lock().unwrap();
                    seen.bytes.extend_from_slice(&buffer[..count]);
                    seen.screen.process(&buffer[..count]);
                }
            }
        }
    })
}
