//! Runs the binary in a folder of its own, without the caller's environment, and takes its answer apart.
//!
//! What must hold for every run is checked here for every run: it does not panic, does not hang, speaks to people
//! and not in Rust's types, and leaves no temporary file behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_infer-stats");

/// Far above what any test needs, also on a busy machine; a run that takes longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What only a programmer would understand.
const NOT_FOR_USERS: [&str; 15] = [
    "panicked",
    "RUST_BACKTRACE",
    "unwrap()",
    "Error(",
    "Error {",
    "Some(",
    "Internal error",
    "Schema error",
    "Arrow error",
    "Object Store error",
    "Error during planning",
    "ParserError",
    "DataFusion",
    "datafusion",
    "Utf8View",
];

/// Records as lines of JSON.
pub fn ndjson(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// A folder with logs to run the binary in.
pub struct Workspace {
    root: TempDir,
}

impl Workspace {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "home", "temporary"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    /// A workspace with one file in it.
    pub fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let workspace = Self::new();
        workspace.write(name, content);
        workspace
    }

    /// A workspace with the records as `log.ndjson`.
    pub fn with_records(records: &[Value]) -> Self {
        Self::with("log.ndjson", ndjson(records))
    }

    /// The folder that commands run in.
    pub fn folder(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The folder that stands for the user's own configuration.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of what stands in the folder, sorted.
    pub fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Whether nothing temporary is left of the runs so far.
    pub fn is_clean(&self) -> bool {
        fs::read_dir(self.root.path().join("temporary")).unwrap().next().is_none()
    }

    /// Variables of the environment that a run gets; there are no others.
    pub fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [("HOME", self.home()), ("XDG_CONFIG_HOME", self.home()), ("TMPDIR", self.root.path().join("temporary"))]
    }

    /// A command line, to be run.
    pub fn command<'a>(&'a self, arguments: &[&str]) -> Invocation<'a> {
        let mut command = assert_cmd::Command::new(BINARY);
        command.args(arguments).env_clear().envs(self.environment()).current_dir(self.folder()).timeout(PATIENCE);
        Invocation { workspace: self, command, typed: arguments.join(" ") }
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).run()
    }

    /// The report of a run that must succeed.
    pub fn report(&self, arguments: &[&str]) -> Report {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--format", "json"]);
        self.run(&arguments).report()
    }

    /// What SQL says about logs.
    pub fn sql(&self, query: &str, logs: &[&str]) -> Report {
        self.report(&[&["sql", query], logs].concat())
    }
}

/// One command line before it is run.
pub struct Invocation<'a> {
    workspace: &'a Workspace,
    command: assert_cmd::Command,
    typed: String,
}

impl Invocation<'_> {
    pub fn variable(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs in a folder below the workspace's.
    pub fn inside(mut self, folder: &str) -> Self {
        self.command.current_dir(self.workspace.path(folder));
        self
    }

    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.command.write_stdin(bytes.into());
        self
    }

    pub fn run(mut self) -> Run {
        let output = self.command.output().unwrap();
        let run = Run {
            typed: self.typed,
            status: output.status,
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        for sign in NOT_FOR_USERS {
            assert!(!run.stderr.contains(sign), "`{sign}` shown to the user: {run:?}");
        }
        assert!(self.workspace.is_clean(), "a temporary file is left behind: {run:?}");
        run
    }
}

/// What a run printed, and how it ended.
pub struct Run {
    pub typed: String,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Run {
    /// The run itself, after checking its exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        self
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// The report on standard output of a run that succeeded.
    #[track_caller]
    pub fn report(self) -> Report {
        self.exits(0).report_anyway()
    }

    /// The report on standard output, however the run ended.
    #[track_caller]
    pub fn report_anyway(&self) -> Report {
        match serde_json::from_slice(&self.stdout) {
            Ok(value) => Report(value),
            Err(error) => panic!("{error}: {self:?}"),
        }
    }

    /// The one sentence on standard error of a run that refused its work: exit code `code`, nothing on standard output.
    #[track_caller]
    pub fn refusal(self, code: i32) -> String {
        let run = self.exits(code);
        assert_eq!(run.text(), "", "{run:?}");
        run.stderr.trim_end().to_owned()
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stdout = String::from_utf8_lossy(&self.stdout);
        write!(f, "infer-stats {}\n{}\n--- stdout\n{stdout}\n--- stderr\n{}", self.typed, self.status, self.stderr)
    }
}

/// The JSON form of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Report(pub Value);

impl Report {
    pub fn rows(&self) -> &[Value] {
        self.0["rows"].as_array().unwrap()
    }

    /// The only row.
    #[track_caller]
    pub fn row(&self) -> &Value {
        assert_eq!(self.rows().len(), 1, "{}", self.0);
        &self.rows()[0]
    }

    /// The values of one column, from the first row to the last.
    #[track_caller]
    pub fn column(&self, name: &str) -> Vec<Value> {
        let value = |row: &Value| row.get(name).unwrap_or_else(|| panic!("no column {name}: {row}")).clone();
        self.rows().iter().map(value).collect()
    }

    /// The names of the columns, in order.
    pub fn column_names(&self) -> Vec<&str> {
        self.0["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect()
    }

    /// A count of the accounting.
    #[track_caller]
    pub fn counted(&self, name: &str) -> u64 {
        self.0["source"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", self.0["source"]))
    }

    /// Records, and of them rejected and used; every record must be accounted for.
    #[track_caller]
    pub fn records(&self) -> Records {
        let [records, rejected, skipped, duplicates, filtered, used] =
            ["records", "rejected", "skipped", "duplicates", "filtered", "used"].map(|name| self.counted(name));
        assert_eq!(records, rejected + skipped + duplicates + filtered + used, "{}", self.0["source"]);
        Records { records, rejected, used }
    }

    /// Counts of the notes with this code, by their text.
    pub fn notes(&self, code: &str) -> Vec<(&str, Option<u64>)> {
        let notes = self.0["notes"].as_array().unwrap().iter().filter(|note| note["code"] == code);
        notes.map(|note| (note["text"].as_str().unwrap(), note["count"].as_u64())).collect()
    }

    /// The one note with this code.
    #[track_caller]
    pub fn note(&self, code: &str) -> (&str, Option<u64>) {
        let notes = self.notes(code);
        assert_eq!(notes.len(), 1, "{code}: {}", self.0["notes"]);
        notes[0]
    }
}

/// The accounting of records, as far as most tests ask.
#[derive(Debug, PartialEq, Eq)]
pub struct Records {
    pub records: u64,
    pub rejected: u64,
    pub used: u64,
}

/// Logs of real systems, where they are at hand: a run without them says so and passes.
pub fn real_data(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// An error for people: one line that names its subject, starts with the program and says something.
#[track_caller]
pub fn assert_sentence(message: &str) {
    assert!(message.starts_with("infer-stats: "), "{message}");
    assert!(message.split_whitespace().count() >= 5, "says too little: {message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}
