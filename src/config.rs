//! `infer-stats.toml`: what a user says once instead of in every command.
//!
//! Every value is resolved while it is read, so that a mistake in it can name the line that it stands in.

mod money;
pub(crate) mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glob::Pattern;
use jiff::Timestamp;

use self::table::{Document, Table, Value};
use crate::profile::{Catalog, Profile};
use crate::request::{
    Buckets, Clock, ErrorMeaning, Map, Mistake, MoneySettings, Place, Role, Source, THREADS, WeekStart, Word, Zone,
    are_edges, parse_memory,
};

const FILE_NAME: &str = "infer-stats.toml";

/// The settings of one config file; those that it leaves out are empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// That of the file, absolute: every path of the config is relative to it.
    pub folder: PathBuf,
    pub logs: Vec<PathBuf>,
    pub sources: Vec<Source>,
    pub zone: Option<Zone>,
    pub source_zone: Option<Zone>,
    pub week_start: Option<WeekStart>,
    /// Bytes.
    pub memory: Option<u64>,
    pub threads: Option<usize>,
    /// Folders with the user's own queries, absolute.
    pub queries: Vec<PathBuf>,
    /// The user's own profiles.
    pub profiles: Vec<Arc<Profile>>,
    pub buckets: Buckets,
    /// What the error codes of the logs mean.
    pub errors: BTreeMap<String, ErrorMeaning>,
    pub money: MoneySettings,
}

impl Config {
    /// The config that holds here: the one that was named, else the nearest at or above the current folder, else the
    /// user's own.
    ///
    /// None of these is an empty config. One that is named but cannot be read is a mistake.
    pub fn find(named: Option<&Path>, place: &Place, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let named = named.or(place.config.as_deref());
        let path = match named {
            Some(path) => Some(place.folder.join(path)),
            None => nearest_config(place),
        };
        match path {
            Some(path) => Self::read(&path, place, canonical_columns),
            None => Ok(Config::default()),
        }
    }

    fn read(path: &Path, place: &Place, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let text =
            fs::read_to_string(path).map_err(|reason| Mistake::UnreadableConfig { path: path.to_owned(), reason })?;
        let shown = path.strip_prefix(&place.folder).unwrap_or(path);
        let document = Document { path: &shown.display().to_string(), text: &text };
        let folder = path.parent().unwrap_or(&place.folder);
        Self::from_table(document.parse()?, folder, canonical_columns)
    }

    fn from_table(mut table: Table, folder: &Path, canonical_columns: &[&str]) -> Result<Self, Mistake> {
        let queries = table.paths("queries")?;
        let profiles = table.list("profiles", |path| Ok(Arc::new(Catalog::read(&folder.join(path))?)))?;
        let catalog = Catalog::with(&profiles);
        let config = Config {
            folder: folder.to_owned(),
            logs: table.paths("logs")?,
            sources: sources(table.tables("source")?, folder, canonical_columns, &catalog)?,
            zone: table.read("tz", Zone::parse)?,
            source_zone: table.read("source_tz", Zone::parse)?,
            week_start: table.read("week_start", WeekStart::from_word)?,
            memory: table.read("memory", parse_memory)?,
            threads: table.take("threads").map(threads).transpose()?,
            queries: queries.iter().map(|path| folder.join(path)).collect(),
            profiles,
            buckets: table.table("buckets")?.map_or_else(|| Ok(Buckets::default()), buckets)?,
            errors: table.table("errors")?.map_or_else(|| Ok(BTreeMap::new()), errors)?,
            money: money::money(&mut table, folder)?,
        };
        table.finish()?;
        Ok(config)
    }
}

fn nearest_config(place: &Place) -> Option<PathBuf> {
    let above = place.folder.ancestors().map(|folder| folder.join(FILE_NAME));
    let own = place.config_home.as_ref().map(|home| home.join("infer-stats").join("config.toml"));
    above.chain(own).find(|path| path.is_file())
}

fn threads(value: Value) -> Result<usize, Mistake> {
    let threads = value.integer()?;
    match usize::try_from(threads) {
        Ok(count) if THREADS.contains(&threads) => Ok(count),
        _ => Err(value.mistake(&format!(
            "`threads` must be from {} to {}, but it is {threads}",
            THREADS.start(),
            THREADS.end()
        ))),
    }
}

fn buckets(mut table: Table) -> Result<Buckets, Mistake> {
    let mut buckets = Buckets::default();
    if let Some(value) = table.take("input") {
        buckets.input = edges(value)?;
    }
    if let Some(value) = table.take("output") {
        buckets.output = edges(value)?;
    }
    table.finish()?;
    Ok(buckets)
}

fn edges(value: Value) -> Result<Vec<i64>, Mistake> {
    let items = value.list()?;
    let edges: Vec<i64> = items.iter().map(Value::integer).collect::<Result<_, _>>()?;
    if are_edges(&edges) {
        Ok(edges)
    } else {
        Err(value.mistake(
            "edges of buckets must be whole numbers above 0, each larger than the one before, \
             as in [500, 2000, 8000]",
        ))
    }
}

fn errors(mut table: Table) -> Result<BTreeMap<String, ErrorMeaning>, Mistake> {
    let mut errors = BTreeMap::new();
    for code in table.keys() {
        let Some(mut entry) = table.table(&code)? else {
            continue;
        };
        let meaning = ErrorMeaning { name: entry.text("name")?, stage: entry.text("stage")? };
        entry.finish()?;
        errors.insert(code, meaning);
    }
    Ok(errors)
}

fn sources(
    tables: Vec<Table>,
    folder: &Path,
    canonical_columns: &[&str],
    catalog: &Catalog,
) -> Result<Vec<Source>, Mistake> {
    let mut sources: Vec<Source> = Vec::with_capacity(tables.len());
    for mut table in tables {
        let source = source(&mut table, folder, canonical_columns, catalog)?;
        if sources.iter().any(|other| other.name == source.name) {
            return Err(
                table.mistake(&format!("a second [[source]] is named `{}`: give each its own name", source.name))
            );
        }
        sources.push(source);
    }
    Ok(sources)
}

fn source(table: &mut Table, folder: &Path, canonical_columns: &[&str], catalog: &Catalog) -> Result<Source, Mistake> {
    let name = table.text("name")?;
    let role = table.read("role", Role::from_word)?;
    let paths = table.list("paths", |text| Ok((PathBuf::from(text), glob(folder, text)?)))?;
    let source_zone = table.read("source_tz", Zone::parse)?;
    let clock_start = table.read("clock_start", |text| {
        let clock = Clock { now: Timestamp::UNIX_EPOCH, zone: source_zone.clone().unwrap_or_else(Zone::utc) };
        clock.read("clock_start", text, &mut Vec::new())
    })?;
    let profile = table.read("profile", |named| catalog.named(named, folder))?;
    let maps = table.table("map")?;
    let priority = table.take("priority");
    // Before what is missing: `path` instead of `paths` is told as the slip that it is.
    table.finish()?;
    let Some(name) = name else {
        return Err(table.mistake("a [[source]] needs a name, as in name = \"engine\""));
    };
    if paths.is_empty() {
        return Err(
            table.mistake(&format!("[[source]] `{name}` needs paths, as in paths = [\"logs/engine/**/*.ndjson\"]"))
        );
    }
    let (paths, globs) = paths.into_iter().unzip();
    Ok(Source {
        name,
        role,
        paths,
        globs,
        source_zone,
        clock_start,
        profile,
        maps: maps.map_or_else(|| Ok(Vec::new()), |map| self::maps(map, canonical_columns))?,
        priority: priority.map_or(Ok(0), |value| value.integer())?,
    })
}

fn glob(folder: &Path, text: &str) -> Result<Pattern, Mistake> {
    Source::glob(folder, Path::new(text)).map_err(|reason| Mistake::NotAGlob { text: text.to_owned(), reason })
}

fn maps(mut table: Table, canonical_columns: &[&str]) -> Result<Vec<Map>, Mistake> {
    let mut maps = Vec::new();
    for canonical in table.keys() {
        maps.extend(table.read(&canonical, |place| Map::new(&canonical, place, canonical_columns))?);
    }
    Ok(maps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::unit::Unit;

    const KNOWN: &[&str] = &["ttft_ms", "timestamp", "input_tokens"];

    fn place(folder: &Path) -> Place {
        Place {
            folder: folder.to_owned(),
            now: "2025-06-10T12:00:00Z".parse().unwrap(),
            logs: None,
            config: None,
            config_home: None,
        }
    }

    fn read(text: &str) -> Result<Config, Mistake> {
        let document = Document { path: "infer-stats.toml", text };
        Config::from_table(document.parse()?, Path::new("/logs"), KNOWN)
    }

    fn sentence(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn every_setting_is_read() {
        let config = read(
            r#"
            logs = ["a/*.ndjson", "/b"]
            tz = "Asia/Shanghai"
            source_tz = "+08:00"
            week_start = "sunday"
            memory = "2GiB"
            threads = 0x10
            queries = ["reports"]
            [buckets]
            input = [500, 2_000]
            [errors]
            "1" = { name = "oom", stage = "prefill" }
            E42 = { name = "timeout" }
            [[source]]
            name = "engine"
            role = "engine"
            paths = ["engine/**/*.gz"]
            source_tz = "Asia/Tokyo"
            map = { ttft_ms = "timing.ttft:s" }
            priority = -1
            "#,
        )
        .unwrap();
        assert_eq!(config.logs, [Path::new("a/*.ndjson"), Path::new("/b")]);
        assert_eq!(config.zone.unwrap().name, "Asia/Shanghai");
        assert_eq!(config.source_zone.unwrap().name, "+08:00");
        assert_eq!(config.week_start, Some(WeekStart::Sunday));
        assert_eq!(config.memory, Some(2 << 30));
        assert_eq!(config.threads, Some(16));
        assert_eq!(config.queries, [Path::new("/logs/reports")]);
        assert_eq!(config.buckets.input, [500, 2000]);
        assert_eq!(config.buckets.output, Buckets::default().output);
        assert_eq!(config.errors["1"].stage.as_deref(), Some("prefill"));
        assert_eq!(config.errors["E42"].stage, None);
        let source = &config.sources[0];
        assert_eq!((source.role, source.priority), (Some(Role::Engine), -1));
        assert_eq!(source.maps[0].unit, Some(Unit::Seconds));
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_key() {
        assert!(
            sentence("tz = \"UTC\"\nthread = 2\n")
                .starts_with("infer-stats.toml:2: unknown key `thread`; did you mean `threads`?")
        );
        assert!(
            sentence("[buckets]\n\ninptu = [1]").starts_with(
                "infer-stats.toml:3: unknown key `inptu`; did you mean `input`? (known here: input, output)"
            )
        );
        assert!(
            sentence("[[source]]\nname = \"a\"\npaths = [\"b\"]\nroles = \"engine\"")
                .starts_with("infer-stats.toml:4: unknown key `roles`; did you mean `role`?")
        );
        assert!(
            sentence("[[source]]\nname = \"a\"\npath = [\"b\"]")
                .starts_with("infer-stats.toml:3: unknown key `path`; did you mean `paths`?")
        );
        assert!(
            sentence("[errors]\n1 = { nam = \"oom\" }")
                .starts_with("infer-stats.toml:2: unknown key `nam`; did you mean `name`?")
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_names_its_line_and_both_types() {
        for (text, expected) in [
            ("\nthreads = \"2\"", ":2: `threads` must be a whole number, but it is a text"),
            ("memory = 2", ":1: `memory` must be a text in quotes, but it is a whole number"),
            ("logs = \"a\"", ":1: `logs` must be a list in [ ], but it is a text"),
            ("logs = [\n\"a\",\n1]", ":3: `logs` must be a text in quotes, but it is a whole number"),
            ("buckets = 1", ":1: `buckets` must be a table, but it is a whole number"),
            ("[source]", ":1: `source` must be a list in [ ], but it is a table"),
            ("[errors]\n1 = \"oom\"", ":2: `1` must be a table, but it is a text"),
        ] {
            assert_eq!(sentence(text), format!("infer-stats.toml{expected}"));
        }
    }

    #[test]
    fn a_value_that_makes_no_sense_names_its_line() {
        for (text, line, part) in [
            ("\ntz = \"Asia/Shangai\"", 2, "did you mean `Asia/Shanghai`?"),
            ("threads = 0", 1, "from 1 to 1024, but it is 0"),
            ("threads = 99999999999999999999", 1, "`threads` is out of range: 99"),
            ("memory = \"lots\"", 1, "no amount of memory"),
            ("week_start = \"friday\"", 1, "monday, sunday"),
            ("[buckets]\ninput = [5, 5]", 2, "each larger than the one before"),
            ("[[source]]\npaths = [\"a\"]", 1, "needs a name"),
            ("\n[[source]]\nname = \"a\"", 2, "needs paths"),
            ("[[source]]\nname = \"a\"\npaths = [\"b[\"]", 3, "`b[` is no glob"),
            ("[[source]]\nname=\"a\"\npaths=[\"b\"]\n[[source]]\nname=\"a\"\npaths=[\"c\"]", 4, "second"),
            ("[[source]]\nname=\"a\"\npaths=[\"b\"]\nmap.ttft = \"t\"", 4, "did you mean `ttft_ms`?"),
            ("tz = \"UTC\"\ntz = \"UTC\"", 2, "duplicate key"),
            ("logs = [", 1, ""),
        ] {
            let sentence = sentence(text);
            let start = format!("infer-stats.toml:{line}: ");
            assert!(sentence.starts_with(&start) && sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn the_nearest_config_above_holds_then_the_users_own() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        let home = root.path().join("home");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(home.join("infer-stats")).unwrap();
        fs::write(home.join("infer-stats/config.toml"), "threads = 1").unwrap();
        let place = Place { config_home: Some(home), ..place(&deep) };
        let threads = |place: &Place| Config::find(None, place, KNOWN).unwrap().threads;
        assert_eq!(threads(&place), Some(1));
        fs::write(root.path().join(FILE_NAME), "threads = 2").unwrap();
        assert_eq!(threads(&place), Some(2));
        fs::write(root.path().join("a").join(FILE_NAME), "threads = 3").unwrap();
        assert_eq!(threads(&place), Some(3));
        let config = Config::find(None, &place, KNOWN).unwrap();
        assert_eq!(config.folder, root.path().join("a"));
    }

    #[test]
    fn a_config_that_is_named_holds_alone_and_must_be_there() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(FILE_NAME), "threads = 2").unwrap();
        fs::write(root.path().join("flag.toml"), "threads = 3").unwrap();
        fs::write(root.path().join("variable.toml"), "threads = 4").unwrap();
        let place = Place { config: Some("variable.toml".into()), ..place(root.path()) };
        let threads = |named| Config::find(named, &place, KNOWN).unwrap().threads;
        assert_eq!(threads(Some(Path::new("flag.toml"))), Some(3));
        assert_eq!(threads(None), Some(4));
        let missing = Config::find(Some(Path::new("gone.toml")), &place, KNOWN);
        assert!(matches!(missing, Err(Mistake::UnreadableConfig { .. })));
    }
}
