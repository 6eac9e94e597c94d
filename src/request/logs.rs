//! Which logs to read, and what the config knows about them.

use std::env;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use glob::{MatchOptions, Pattern, PatternError};
use jiff::Timestamp;

use super::{Map, Mistake, Note, Place, Word, Zone};
use crate::config::Config;
use crate::profile::Profile;

/// The logs of a request with the sources that they may belong to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogSelection {
    pub patterns: Vec<LogPattern>,
    /// Every `[[source]]` of the config, used or not.
    pub sources: Vec<Source>,
    /// The current folder, absolute: relative names are compared with the sources from here.
    pub folder: PathBuf,
}

/// A file, folder, glob, or `-` for standard input, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPattern {
    pub text: PathBuf,
    /// The folder that `text` is relative to: that of the config, or empty for the current one.
    /// Names of files are shown without it.
    pub base: PathBuf,
    /// Index into the sources, where the whole pattern lies under one.
    pub source: Option<usize>,
}

/// One `[[source]]` of the config: logs of one origin and how to read them.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub name: String,
    pub role: Option<Role>,
    /// As written, relative to the folder of the config.
    pub paths: Vec<PathBuf>,
    /// The same, absolute, to tell which files are meant.
    pub globs: Vec<Pattern>,
    pub source_zone: Option<Zone>,
    /// When its clock stood at zero, if that tells no date.
    pub clock_start: Option<Timestamp>,
    /// That of all its records.
    pub profile: Option<Arc<Profile>>,
    pub maps: Vec<Map>,
    /// Which of two sources is believed; higher first.
    pub priority: i64,
}

/// What records of one request have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// An id.
    Id,
    /// An id, or where there is none the arrival, the model and the token counts.
    AsOf,
}

impl Word for Matching {
    const KIND: &'static str = "way to match records";
    const WORDS: &'static [(&'static str, Self)] = &[("id", Matching::Id), ("asof", Matching::AsOf)];
}

/// The place in the serving path that wrote a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Gateway,
    Engine,
    App,
}

impl Word for Role {
    const KIND: &'static str = "role";
    const WORDS: &'static [(&'static str, Self)] =
        &[("gateway", Role::Gateway), ("engine", Role::Engine), ("app", Role::App)];
}

impl LogSelection {
    /// The logs that were typed, else those of the environment, else those of the config.
    pub fn find(typed: &[PathBuf], place: &Place, config: &Config, notes: &mut Vec<Note>) -> Result<Self, Mistake> {
        let mut logs =
            LogSelection { patterns: Vec::new(), sources: config.sources.clone(), folder: place.folder.clone() };
        let named: Vec<PathBuf> = match &place.logs {
            _ if !typed.is_empty() => typed.to_vec(),
            Some(variable) => env::split_paths(variable).filter(|path| !path.as_os_str().is_empty()).collect(),
            None => Vec::new(),
        };
        if named.is_empty() {
            logs.add_configured(config);
        } else {
            logs.add_named(named, notes);
        }
        if logs.patterns.is_empty() {
            return Err(Mistake::NoLogs);
        }
        Ok(logs)
    }

    /// The source that a file belongs to: for folders and globs that reach over several sources, asked file by file.
    pub fn source_of(&self, file: &Path) -> Option<&Source> {
        self.source_index(file).map(|index| &self.sources[index])
    }

    /// Index of the source that a path belongs to.
    pub fn source_index(&self, path: &Path) -> Option<usize> {
        let path = tidied(&self.folder.join(path));
        self.sources.iter().position(|source| source.covers(&path))
    }

    /// The name of a file as messages show it: without the folder of the config that named it.
    pub fn shown(&self, name: &str) -> String {
        let bases = self.patterns.iter().map(|pattern| &pattern.base).filter(|base| !base.as_os_str().is_empty());
        let inside = bases.filter_map(|base| Path::new(name).strip_prefix(base).ok()).next();
        inside.map_or_else(|| name.to_owned(), |inside| inside.display().to_string())
    }

    fn add_named(&mut self, named: Vec<PathBuf>, notes: &mut Vec<Note>) {
        for text in named {
            self.add(text, PathBuf::new());
        }
        for (index, source) in self.sources.iter().enumerate() {
            let under: Vec<String> = self
                .patterns
                .iter()
                .filter(|pattern| pattern.source == Some(index))
                .map(|pattern| pattern.text.display().to_string())
                .collect();
            if !under.is_empty() {
                notes.push(source.applied_to(&under.join(", ")));
            }
        }
    }

    fn add_configured(&mut self, config: &Config) {
        for text in &config.logs {
            self.add(text.clone(), config.folder.clone());
        }
        for (index, source) in config.sources.iter().enumerate() {
            self.patterns.extend(source.paths.iter().map(|text| LogPattern {
                text: text.clone(),
                base: config.folder.clone(),
                source: Some(index),
            }));
        }
    }

    fn add(&mut self, text: PathBuf, base: PathBuf) {
        let mut pattern = LogPattern { text, base, source: None };
        if !pattern.is_stdin() {
            pattern.source = self.source_index(&pattern.path());
        }
        self.patterns.push(pattern);
    }
}

impl LogPattern {
    /// Whether this is standard input, for which the base means nothing.
    pub fn is_stdin(&self) -> bool {
        self.text.as_os_str() == "-"
    }

    /// The path to look at from the current folder.
    pub fn path(&self) -> PathBuf {
        self.base.join(&self.text)
    }
}

impl Source {
    /// The glob of a path of a source: absolute, with the folder of the config taken literally.
    pub fn glob(folder: &Path, path: &Path) -> Result<Pattern, PatternError> {
        let literal = Pattern::escape(&folder.to_string_lossy());
        let whole = tidied(&PathBuf::from(literal).join(path));
        Pattern::new(&whole.to_string_lossy())
    }

    /// Whether an absolute path, or a folder above it, is among the paths of this source.
    fn covers(&self, path: &Path) -> bool {
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        path.ancestors().any(|part| self.globs.iter().any(|glob| glob.matches_path_with(part, options)))
    }

    /// The note that says which logs are read with the settings of this source.
    pub fn applied_to(&self, logs: &str) -> Note {
        Note::new(
            "source_applied",
            format!("{logs}: read with the settings of [[source]] `{}` of the config", self.name),
        )
    }
}

/// Without `.` and `..`, by the text alone: the path may be a glob or may not exist.
fn tidied(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(logs: Option<&str>) -> Place {
        Place {
            folder: "/srv".into(),
            now: "2025-06-10T12:00:00Z".parse().unwrap(),
            logs: logs.map(Into::into),
            config: None,
            config_home: None,
        }
    }

    fn config(logs: &[&str], sources: &[(&str, &[&str])]) -> Config {
        let folder = Path::new("/srv/conf[1]");
        let sources = sources.iter().map(|(name, paths)| Source {
            name: (*name).to_owned(),
            role: None,
            paths: paths.iter().map(PathBuf::from).collect(),
            globs: paths.iter().map(|path| Source::glob(folder, Path::new(path)).unwrap()).collect(),
            source_zone: None,
            clock_start: None,
            profile: None,
            maps: Vec::new(),
            priority: 0,
        });
        Config {
            folder: folder.to_owned(),
            logs: logs.iter().map(PathBuf::from).collect(),
            sources: sources.collect(),
            ..Config::default()
        }
    }

    fn find(typed: &[&str], place: &Place, config: &Config) -> (LogSelection, Vec<Note>) {
        let typed: Vec<PathBuf> = typed.iter().map(PathBuf::from).collect();
        let mut notes = Vec::new();
        let logs = LogSelection::find(&typed, place, config, &mut notes).unwrap();
        (logs, notes)
    }

    fn paths(logs: &LogSelection) -> Vec<String> {
        let paths = logs.patterns.iter().map(LogPattern::path);
        paths.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn typed_logs_come_before_the_environment_and_the_environment_before_the_config() {
        let config = config(&["c.ndjson"], &[("engine", &["engine/*.ndjson"])]);
        let both = place(Some("a.ndjson::b/*.gz"));
        assert_eq!(paths(&find(&["t.ndjson"], &both, &config).0), ["t.ndjson"]);
        assert_eq!(paths(&find(&[], &both, &config).0), ["a.ndjson", "b/*.gz"]);
        assert_eq!(
            paths(&find(&[], &place(None), &config).0),
            ["/srv/conf[1]/c.ndjson", "/srv/conf[1]/engine/*.ndjson"]
        );
    }

    #[test]
    fn no_logs_anywhere_is_a_mistake_that_says_the_three_ways() {
        let mistake = LogSelection::find(&[], &place(None), &Config::default(), &mut Vec::new());
        let sentence = mistake.unwrap_err().to_string();
        for way in ["arguments", "INFER_STATS_LOGS", "logs = [...]"] {
            assert!(sentence.contains(way), "{sentence}");
        }
    }

    #[test]
    fn typed_logs_under_a_source_take_its_settings_and_a_note_says_so() {
        let config = config(&[], &[("engine", &["engine/*.ndjson", "old"]), ("gateway", &["../gw/**/*.gz"])]);
        let typed = [
            "conf[1]/engine/a.ndjson",
            "./conf[1]/old/2024/b.csv",
            "/srv/gw/x/y/c.gz",
            "conf[1]/engine/deep/d.ndjson",
            "conf1/engine/a.ndjson",
            "-",
        ];
        let (logs, notes) = find(&typed, &place(None), &config);
        let sources: Vec<_> = logs.patterns.iter().map(|pattern| pattern.source).collect();
        assert_eq!(sources, [Some(0), Some(0), Some(1), None, None, None]);
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "conf[1]/engine/a.ndjson, ./conf[1]/old/2024/b.csv: \
                 read with the settings of [[source]] `engine` of the config",
                "/srv/gw/x/y/c.gz: read with the settings of [[source]] `gateway` of the config",
            ]
        );
    }

    #[test]
    fn files_of_a_folder_that_reaches_over_sources_are_told_apart_one_by_one() {
        let config = config(&[], &[("engine", &["engine/*.ndjson"])]);
        let (logs, notes) = find(&["conf[1]"], &place(None), &config);
        assert_eq!((logs.patterns[0].source, notes.len()), (None, 0));
        let source = |file: &str| logs.source_of(Path::new(file)).map(|source| &source.name);
        assert_eq!(source("conf[1]/engine/a.ndjson").unwrap(), "engine");
        assert_eq!(source("conf[1]/other/a.ndjson"), None);
    }
}
