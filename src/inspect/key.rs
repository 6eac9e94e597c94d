//! What was seen of one key of a log.

use super::kind::{Look, Type};

/// Separates the keys of a nested path in a name; no logger writes it in a key.
pub const SEPARATOR: char = '\0';

/// Sightings of one key, or of one path of nested keys.
#[derive(Clone, Debug)]
pub struct Key {
    /// The keys from the top of the record down, joined by [`SEPARATOR`].
    pub name: Box<str>,
    /// Records in which the key has a value; None where a footer does not tell.
    pub present: Option<u64>,
    pub nulls: u64,
    /// Smallest and largest finite number, each with the offset of its record.
    pub range: Option<(Extreme, Extreme)>,
    /// Times without a zone.
    pub zoneless: u64,
    /// By [`Type`].
    types: [Sightings; Type::ALL.len()],
    /// Offset of the first record with the key, and the key's place in it.
    first: (u64, u32),
}

/// How often something was seen and in which record first.
#[derive(Clone, Copy, Debug)]
pub struct Sightings {
    pub count: u64,
    /// Byte at which the record starts; [`u64::MAX`] where it is not known.
    pub first: u64,
}

/// A number and the offset of the first record that holds it; [`u64::MAX`] where it is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extreme {
    pub value: f64,
    pub offset: u64,
}

impl Extreme {
    /// One that a file states without its record.
    pub fn of_file(value: f64) -> Self {
        Self { value, offset: u64::MAX }
    }
}

impl Key {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            present: Some(0),
            nulls: 0,
            range: None,
            zoneless: 0,
            types: [Sightings { count: 0, first: u64::MAX }; Type::ALL.len()],
            first: (u64::MAX, u32::MAX),
        }
    }

    /// A column of a file that declares its type, at `place` among its columns.
    pub fn declared(name: &str, place: u32, kind: Type, present: Option<u64>, rows: u64) -> Self {
        let mut key = Self { present, first: (0, place), ..Self::new(name) };
        key.types[kind as usize].count = present.unwrap_or(rows);
        key
    }

    /// Counts the key's value in the record at `offset`; None is null.
    pub fn see(&mut self, look: Option<Look>, offset: u64, place: u32) {
        self.first = self.first.min((offset, place));
        let Some(look) = look else {
            self.nulls += 1;
            return;
        };
        self.present = self.present.map(|present| present + 1);
        self.zoneless += u64::from(look.zoneless);
        self.types[look.kind as usize].add(Sightings { count: 1, first: offset });
        if let Some(value) = look.number {
            let one = Extreme { value, offset };
            self.widen((one, one));
        }
    }

    /// Adds what another part of the same file shows of the key.
    pub fn merge(&mut self, other: &Key) {
        self.present = self.present.zip(other.present).map(|(one, other)| one + other);
        self.nulls += other.nulls;
        self.zoneless += other.zoneless;
        self.first = self.first.min(other.first);
        self.types.iter_mut().zip(other.types).for_each(|(own, other)| own.add(other));
        if let Some(range) = other.range {
            self.widen(range);
        }
    }

    fn widen(&mut self, (low, high): (Extreme, Extreme)) {
        let range = self.range.get_or_insert((low, high));
        if (low.value, low.offset) < (range.0.value, range.0.offset) {
            range.0 = low;
        }
        if high.value > range.1.value || high.value == range.1.value && high.offset < range.1.offset {
            range.1 = high;
        }
    }

    /// Where the key stands first, to list keys as the log does.
    pub fn place(&self) -> (u64, u32) {
        self.first
    }

    /// Whether any record has it, with a value or null; a rejected record may have named it.
    pub fn is_seen(&self) -> bool {
        self.nulls > 0 || self.present != Some(0)
    }

    /// The types of its values, the most frequent first.
    pub fn types(&self) -> Vec<(Type, Sightings)> {
        let seen = Type::ALL.into_iter().zip(self.types).filter(|(_, sightings)| sightings.count > 0);
        let mut types: Vec<_> = seen.collect();
        types.sort_by_key(|(_, sightings)| std::cmp::Reverse(sightings.count));
        types
    }

    pub fn count_of(&self, kind: Type) -> u64 {
        self.types[kind as usize].count
    }

    /// The keys from the top of the record down.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.name.split(SEPARATOR)
    }

    /// The last of them.
    pub fn leaf(&self) -> &str {
        self.name.rsplit(SEPARATOR).next().unwrap_or_default()
    }

    /// The path as `--map` takes it: joined by dots, and in quotes where a nested key holds one itself.
    pub fn dotted(&self) -> String {
        if !self.name.contains(SEPARATOR) {
            return self.name.to_string();
        }
        let quoted = |key: &str| if key.contains(['.', ':']) { format!("\"{key}\"") } else { key.to_owned() };
        self.path().map(quoted).collect::<Vec<_>>().join(".")
    }
}

impl Sightings {
    fn add(&mut self, other: Sightings) {
        self.count += other.count;
        self.first = self.first.min(other.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::value::RawValue;

    fn key_of(numbers: &[&str]) -> Key {
        let mut key = Key::new("n");
        for (offset, number) in numbers.iter().enumerate() {
            key.see(Look::at(RawValue::Number(number.as_bytes())), offset as u64, 0);
        }
        key
    }

    #[test]
    fn types_come_the_most_frequent_first_and_null_is_none_of_them() {
        let mut key = key_of(&["1", "2.5", "3.5", "NaN"]);
        key.see(None, 9, 0);
        let words: Vec<_> = key.types().iter().map(|(kind, seen)| (kind.word(), seen.count, seen.first)).collect();
        assert_eq!(words, [("number", 2, 1), ("integer", 1, 0), ("NaN", 1, 3)]);
        assert_eq!((key.present, key.nulls), (Some(4), 1));
    }

    #[test]
    fn parts_of_a_file_add_up_in_any_order() {
        let all = ["5", "1", "9", "1", "9"];
        let whole = key_of(&all);
        let mut late = Key::new("n");
        all.iter().enumerate().skip(2).for_each(|(offset, number)| {
            late.see(Look::at(RawValue::Number(number.as_bytes())), offset as u64, 0);
        });
        let mut early = key_of(&all[..2]);
        early.merge(&late);
        late.merge(&key_of(&all[..2]));
        for merged in [early, late] {
            assert_eq!(merged.range, whole.range);
            assert_eq!((merged.present, merged.place()), (whole.present, whole.place()));
        }
        assert_eq!(whole.range.map(|(low, high)| (low.offset, high.offset)), Some((1, 2)));
    }

    #[test]
    fn a_nested_key_with_a_dot_is_quoted_and_a_flat_one_is_not() {
        assert_eq!(Key::new("gen_ai.usage\0input").dotted(), "\"gen_ai.usage\".input");
        assert_eq!(Key::new("gen_ai.usage.input").dotted(), "gen_ai.usage.input");
        assert_eq!(Key::new("a\0b").leaf(), "b");
    }
}
