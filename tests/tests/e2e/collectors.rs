//! Public collectors take what the harness exports: Rotel the spans and sums of OTLP,
//! Prometheus the page of metrics. Each runs where it is installed.

use super::otlp::{exported, spans, spans_are_those_of_the_run_log, sums_are_those_of_status};
use super::serve::Served;
use flate2::read::GzDecoder;
use premath_tests::{
    PATIENCE, Posted, Scratch, command, issue, receiver, skipped, until, workspace,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of another project; dropped, it is ended.
struct Server(Child);

impl Server {
    /// Starts it, and waits until it answers at an address.
    #[track_caller]
    fn start(mut program: Command, log: &Path, address: &str) -> Self {
        let output = fs::File::create(log).unwrap();
        program.stderr(output.try_clone().unwrap()).stdout(output);
        let mut server = Self(program.stdin(Stdio::null()).spawn().unwrap());
        let answers = until(PATIENCE, || {
            assert!(server.0.try_wait().unwrap().is_none(), "{}", read(log));
            TcpStream::connect(address).ok()
        });
        assert!(answers.is_some(), "{}", read(log));
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_default()
}

/// Returns a request without the compression of its body.
fn unpacked((head, body): Posted) -> Posted {
    if !head.contains("content-encoding: gzip") {
        return (head, body);
    }
    let mut whole = Vec::new();
    GzDecoder::new(&*body).read_to_end(&mut whole).unwrap();
    (head, whole)
}

/// Returns an address on loopback at which nothing listens.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Returns the program of Rotel, where the Python package is installed.
fn rotel() -> Option<PathBuf> {
    let folder = workspace().join("target/ci-tools/rotel/lib");
    let pythons = fs::read_dir(folder).ok()?;
    let pythons = pythons.filter_map(|entry| Some(entry.ok()?.path()));
    let mut programs = pythons.map(|python| python.join("site-packages/rotel/rotel-agent"));
    programs.find(|program| program.is_file())
}

#[test]
fn an_otlp_collector_takes_and_passes_on_the_spans_and_sums_of_a_batch() {
    let Some(program) = rotel() else {
        return skipped("a collector of OTLP", "target/ci-tools/rotel has no Rotel");
    };
    let (stored, posted) = receiver(&["200 OK"]);
    let (http, grpc) = (free(), free());
    let scratch = exported(2, &["a", "b", "c"], &format!("http://{http}"), "");
    let folder = scratch.folder();
    let mut collector = command(&program);
    collector
        .arg("start")
        .args(["--otlp-http-endpoint", &http, "--otlp-grpc-endpoint", &grpc])
        .args(["--exporter", "otlp", "--otlp-exporter-protocol", "http"])
        .args(["--otlp-exporter-endpoint", &stored])
        .arg("--pid-file")
        .arg(folder.join("rotel.pid"))
        .arg("--log-file")
        .arg(folder.join("rotel.file"));
    let log = folder.join("rotel.log");
    let _collector = Server::start(collector, &log, &http);
    let work = "touch \"$HOME/$PREMATH_ISSUE_ID\"; \
        until [ -e \"$HOME/a\" ] && [ -e \"$HOME/b\" ]; do sleep 0.05; done";
    let verify = "test \"$PREMATH_ISSUE_ID\" != c";
    let ended = scratch.batch(work, verify).end().exits(1);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!said.contains("telemetry"), "{said}");
    let mut all: Vec<Posted> = Vec::new();
    let arrived = until(PATIENCE, || {
        all.extend(posted.try_iter().map(unpacked));
        let has_end = spans(&all).iter().any(|span| span.name == "batch");
        let sums = |(head, _): &&Posted| head.starts_with("post /v1/metrics ");
        // The totals of the end are the last that is sent.
        (has_end && all.iter().any(|posted| sums(&posted))).then_some(())
    });
    assert!(arrived.is_some(), "{}", read(&log));
    spans_are_those_of_the_run_log(&scratch, &all, 2);
    let last = until(PATIENCE, || {
        all.extend(posted.try_iter().map(unpacked));
        let sums = super::otlp::points(&all, "x");
        let attempts = scratch.trajectory().into_iter();
        let attempts = attempts.filter(|row| row["action"] == "worker.loop");
        (sums.get("premath.batch.attempts") == Some(&(attempts.count() as f64))).then_some(())
    });
    assert!(last.is_some(), "{}", read(&log));
    sums_are_those_of_status(&scratch, &all);
}

/// Runs the lint of Prometheus; `None` where it is not installed.
fn lint(text: &str) -> Option<()> {
    let mut lint = command(Path::new("promtool"));
    lint.args(["check", "metrics"]);
    lint.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut lint = lint.spawn().ok()?;
    let mut input = lint.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let ended = lint.wait_with_output().unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ended.status.success() && said.is_empty(), "{said}");
    Some(())
}

#[test]
fn the_lint_of_prometheus_finds_nothing_in_the_metrics() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let printed = scratch.premath(["status", "--metrics"]).end().exits(0);
    if lint(&printed.stdout).is_none() {
        return skipped("the lint of metrics", "promtool is not installed");
    }
    let work = "test $PREMATH_ISSUE_ID = a";
    scratch.batch(work, "true").end().exits(1);
    let printed = scratch.premath(["status", "--metrics"]).end().exits(0);
    assert!(
        printed
            .stdout
            .contains("premath_batch_failed_attempts_total{")
    );
    lint(&printed.stdout).unwrap();
}

/// A sample without the labels that the scrape adds.
type Samples = BTreeMap<String, String>;

/// Returns the samples whose figures do not change while nothing happens.
fn page(text: &str) -> Samples {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| {
        let (key, figure) = line.rsplit_once(' ').unwrap();
        let (name, labels) = key.split_once('{').unwrap();
        let mut labels: Vec<&str> = labels.strip_suffix('}').unwrap().split(',').collect();
        labels.sort_unstable();
        (format!("{name} {}", labels.join(",")), figure.to_owned())
    });
    samples.filter(|(name, _)| is_steady(name)).collect()
}

fn is_steady(name: &str) -> bool {
    let moves = ["elapsed", "age_", "per_hour", "time_left"];
    name.starts_with("premath_") && !moves.iter().any(|part| name.contains(part))
}

/// Returns the samples that Prometheus stored last.
fn stored(address: &str) -> Samples {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET /api/v1/query?query=%7Bjob=%22premath%22%7D HTTP/1.0\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    // It answers in words until it has begun.
    let Ok(answer) = serde_json::from_str::<Value>(body) else {
        return Samples::new();
    };
    assert_eq!(answer["status"], "success", "{answer}");
    let samples = answer["data"]["result"].as_array().unwrap().iter();
    let samples = samples.map(|sample| {
        let labels = sample["metric"].as_object().unwrap();
        let own = labels
            .iter()
            .filter(|(name, _)| !["__name__", "job", "instance"].contains(&name.as_str()));
        let mut own: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
        own.sort_unstable();
        let name = labels["__name__"].as_str().unwrap();
        let figure = sample["value"][1].as_str().unwrap().to_owned();
        (format!("{name} {}", own.join(",")), figure)
    });
    samples.filter(|(name, _)| is_steady(name)).collect()
}

#[test]
fn prometheus_scrapes_the_page_and_stores_its_figures() {
    let found = command(Path::new("prometheus")).arg("--version").output();
    if !found.is_ok_and(|ran| ran.status.success()) {
        return skipped("a scrape by Prometheus", "prometheus is not installed");
    }
    let mut served = Served::start(1, &[issue("a"), issue("bad"), issue("c")], &[]);
    served.started(&["a"]);
    let folder = served.scratch.folder();
    let (configuration, address) = (folder.join("prometheus.yml"), free());
    let target = served.address();
    let text = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: premath\n  \
         authorization:\n    credentials: {}\n  static_configs:\n  - targets: [\"{target}\"]\n",
        served.token()
    );
    fs::write(&configuration, text).unwrap();
    let mut prometheus = command(Path::new("prometheus"));
    prometheus
        .arg(format!("--config.file={}", configuration.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("tsdb").display()
        ))
        .arg(format!("--web.listen-address={address}"));
    let log = folder.join("prometheus.log");
    let _prometheus = Server::start(prometheus, &log, &address);
    let mut seen = (Samples::new(), Samples::new());
    let agrees = until(PATIENCE, || {
        seen = (page(&served.get("/metrics").body), stored(&address));
        (!seen.1.is_empty() && seen.0 == seen.1).then_some(())
    });
    assert!(agrees.is_some(), "{seen:#?}\n{}", read(&log));
    let running = seen
        .1
        .iter()
        .find(|(name, _)| name.starts_with("premath_running_batches"));
    assert_eq!(running.unwrap().1, "1");
    served.finish();
}
