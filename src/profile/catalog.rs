//! All profiles: those of the program and those of the user.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::thread;

use include_dir::{Dir, include_dir};

use super::{Condition, IdRule, Profile};
use crate::nearest::suggestion;
use crate::request::Mistake;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/profiles");

/// Profiles in the order in which a record is compared with them.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    profiles: Vec<Arc<Profile>>,
}

impl Catalog {
    /// The profiles that the program brings.
    pub fn embedded() -> &'static Catalog {
        static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
            let read = |file: &include_dir::File<'static>| {
                let name = file.path().file_stem()?.to_str()?;
                // A test reads each: one that is broken never gets here.
                let profile =
                    Profile::embedded(name, &file.path().display().to_string(), file.contents_utf8()?).ok()?;
                Some(Arc::new(profile))
            };
            // by two threads: a small log is read in less time than all profiles
            let files: Vec<_> = EMBEDDED.files().collect();
            let (one, other) = files.split_at(files.len() / 2);
            let profiles = |files: &[&include_dir::File<'static>]| files.iter().filter_map(|file| read(file)).collect();
            let mut catalog = thread::scope(|scope| {
                let beside = scope.spawn(|| -> Vec<Arc<Profile>> { profiles(other) });
                let mut catalog = Catalog { profiles: profiles(one) };
                catalog.profiles.extend(beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                catalog
            });
            catalog.sort();
            catalog
        });
        &CATALOG
    }

    /// All profiles with the user's own, which come first, and replace those of the same name.
    pub fn with(own: &[Arc<Profile>]) -> Self {
        let mut catalog = Self::embedded().clone();
        catalog.profiles.retain(|profile| own.iter().all(|other| other.name != profile.name));
        catalog.profiles.splice(0..0, own.iter().cloned());
        catalog
    }

    /// The profile that a user names: by its name, or by the path of its file.
    pub fn named(&self, named: &str, folder: &Path) -> Result<Arc<Profile>, Mistake> {
        if named.contains(std::path::MAIN_SEPARATOR) || named.ends_with(".toml") {
            return Ok(Arc::new(Self::read(&folder.join(named))?));
        }
        self.find(named)
    }

    /// For logs whose records are all of one profile: it alone, and the envelopes that may stand around them.
    pub fn only(&self, profile: &Arc<Profile>) -> Vec<Arc<Profile>> {
        let envelopes = self.profiles.iter().filter(|other| other.is_envelope() && other.name != profile.name);
        std::iter::once(profile).chain(envelopes).cloned().collect()
    }

    /// A profile of the user.
    pub fn read(path: &Path) -> Result<Profile, Mistake> {
        let unreadable = |reason| Mistake::UnreadableProfile { path: path.to_owned(), reason };
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Profile::parse(&name, &path.display().to_string(), &text)
    }

    /// The profile of this name.
    ///
    /// # Errors
    /// A [`Mistake`] that names the nearest.
    pub fn find(&self, name: &str) -> Result<Arc<Profile>, Mistake> {
        self.profiles.iter().find(|profile| profile.name == name).cloned().ok_or_else(|| {
            let names = self.profiles.iter().map(|profile| profile.name.as_str());
            Mistake::UnknownProfile { name: name.to_owned(), hint: suggestion(name, names) }
        })
    }

    /// What all producers put around the ids of requests.
    pub fn ids(&self) -> IdRule {
        let mut rule = IdRule::default();
        for ids in self.all().iter().map(|profile| &profile.ids) {
            rule.prefixes.extend(ids.prefixes.iter().cloned());
            rule.cuts.extend(ids.cuts.iter().cloned());
        }
        rule.prefixes.sort();
        rule.prefixes.dedup();
        rule.cuts.sort();
        rule.cuts.dedup();
        rule
    }

    pub fn all(&self) -> &[Arc<Profile>] {
        &self.profiles
    }

    /// Those that ask for more come first, since they say more; names settle the rest.
    fn sort(&mut self) {
        self.profiles.sort_by_key(|profile| {
            let weight = profile.recognise.iter().map(Condition::weight).min();
            (profile.order, profile.is_envelope(), std::cmp::Reverse(weight), profile.name.clone())
        });
    }
}
