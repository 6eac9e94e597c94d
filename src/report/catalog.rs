//! All reports: the files of `queries/`, embedded, and those of the user's own folders.
//!
//! To add one: put `queries/NAME.sql` with its header there, its golden result beside the other golden results, and
//! a section in the README. `infer-stats run NAME` finds it; a test parses and plans every embedded one. What several of
//! them share is a file of `queries/parts/`, which they include; it is no report.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::Context;
use include_dir::{Dir, File, include_dir};

use crate::nearest::suggestion;
use crate::report::header::Header;
use crate::report::mistake::ReportMistake;
use crate::report::parameter::Parameter;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/queries");

/// The folder of what queries include.
const PARTS: &str = "parts";

/// The files of `queries/` and of its folders: what is in a folder is a command of several words.
fn embedded() -> impl Iterator<Item = &'static File<'static>> {
    let folders = EMBEDDED.dirs().filter(|folder| folder.path() != Path::new(PARTS));
    EMBEDDED.files().chain(folders.flat_map(Dir::files))
}

/// The parts that a query may include, each with its name, as in `{% include "parts/gaps.sql" %}`.
pub fn parts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = EMBEDDED.get_dir(PARTS).into_iter().flat_map(Dir::files);
    files.filter_map(|file| Some((file.path().to_str()?, file.contents_utf8()?)))
}

/// A report's SQL and what its header says.
#[derive(Debug, Clone)]
pub struct Query {
    pub name: String,
    pub header: Header,
    /// The file as it is, header included.
    pub text: String,
    /// Where it came from, for people: `built in` or its path.
    pub origin: String,
}

impl Query {
    /// The parameter of a name, or a mistake that names the nearest.
    pub fn parameter(&self, name: &str) -> Result<&Parameter, ReportMistake> {
        let parameters = &self.header.parameters;
        parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| ReportMistake::NoParameter {
            query: self.name.clone(),
            name: name.to_owned(),
            hint: suggestion(name, parameters.iter().map(|parameter| parameter.name.as_str())),
        })
    }
}

/// The queries that a run knows, by name.
#[derive(Debug)]
pub struct Catalog {
    queries: Vec<Query>,
}

impl Catalog {
    /// The reports that the program brings, by name. A test reads each: one that is broken never gets here.
    pub fn embedded() -> &'static [Query] {
        static QUERIES: LazyLock<Vec<Query>> =
            LazyLock::new(|| Catalog::load(&[]).map(|catalog| catalog.queries).unwrap_or_default());
        &QUERIES
    }

    /// The embedded queries and those of `folders`; an own query wins over an embedded one of its name, an earlier folder
    /// over a later one.
    pub fn load(folders: &[PathBuf]) -> anyhow::Result<Self> {
        let mut catalog = Self { queries: Vec::new() };
        for folder in folders {
            let entries = std::fs::read_dir(folder)
                .with_context(|| format!("could not read the queries in {}", folder.display()))?;
            let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
            paths.sort();
            for path in paths {
                let text =
                    std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                catalog.add(name, text, path.display().to_string())?;
            }
        }
        for file in embedded() {
            let path = file.path().with_extension("");
            let words: Vec<String> = path.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let text = file.contents_utf8().context("a built-in query is not UTF-8")?;
            catalog.add(words.join(" "), text.to_owned(), "built in".to_owned())?;
        }
        catalog.queries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(catalog)
    }

    fn add(&mut self, name: String, text: String, origin: String) -> anyhow::Result<()> {
        if self.queries.iter().all(|query| query.name != name) {
            let header =
                Header::parse(&text).with_context(|| format!("the header of {name}.sql ({origin}) is wrong"))?;
            self.queries.push(Query { name, header, text, origin });
        }
        Ok(())
    }

    pub fn all(&self) -> &[Query] {
        &self.queries
    }

    /// The query of a name, or a mistake that names the nearest.
    pub fn find(&self, name: &str) -> Result<&Query, ReportMistake> {
        self.queries.iter().find(|query| query.name == name).ok_or_else(|| ReportMistake::NoQuery {
            name: name.to_owned(),
            hint: suggestion(name, self.queries.iter().map(|query| query.name.as_str())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_query_says_what_it_answers_and_how_it_is_asked() {
        for query in Catalog::load(&[]).unwrap().all() {
            let header = &query.header;
            assert!(!header.title.is_empty() && !header.question.is_empty(), "{}", query.name);
            assert!(
                !header.examples.is_empty() && header.parameters.iter().all(|it| !it.help.is_empty()),
                "{}",
                query.name
            );
        }
    }

    #[test]
    fn an_own_query_wins_over_a_built_in_one_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("latency.sql"), "-- title: Mine\n-- question: Q?\nSELECT 1").unwrap();
        let catalog = Catalog::load(&[folder.path().to_owned()]).unwrap();
        assert_eq!(catalog.find("latency").unwrap().header.title, "Mine");
    }

    #[test]
    fn a_part_of_queries_is_no_query() {
        let names: Vec<&str> = parts().map(|(name, _)| name).collect();
        assert!(names.contains(&"parts/gaps.sql"), "{names:?}");
        assert!(Catalog::load(&[]).unwrap().all().iter().all(|query| !query.name.starts_with(PARTS)));
    }

    #[test]
    fn an_unknown_query_names_the_nearest() {
        let error = Catalog::load(&[]).unwrap().find("latncy").unwrap_err();
        assert!(error.to_string().contains("latency"), "{error}");
    }
}
