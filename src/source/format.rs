//! Tells what a file holds by its first bytes. Names lie (`.json` may be lines, an array or one pretty object; rotated logs
//! end in `.1`), so a name decides only what the content leaves open.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use memchr::memchr;

use crate::source::compression::is_damage;
use crate::source::window::BYTE_ORDER_MARK;

/// Bytes looked at first, and at most: more where the first line is longer, or where only text was seen so far, since a
/// server may print a long banner before its first record.
const WINDOWS: [usize; 2] = [64 << 10, 1 << 20];

/// CSV records looked at to see whether they agree with the header.
const CSV_SAMPLE: usize = 20;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON object a line, perhaps with lines of text between.
    Ndjson,
    /// JSON arrays of objects.
    JsonArray,
    /// JSON objects that span lines, or several on one line.
    JsonObjects,
    Csv {
        delimiter: u8,
    },
    Parquet,
    /// Text without any record.
    Text,
    /// Something else, named as in "a PNG image".
    Unknown(&'static str),
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ndjson => "NDJSON",
            Self::JsonArray => "JSON array",
            Self::JsonObjects => "JSON objects",
            Self::Csv { .. } => "CSV",
            Self::Parquet => "Parquet",
            Self::Text => "plain text",
            Self::Unknown(kind) => kind,
        })
    }
}

/// Reads the start of decoded content and says what it is. The bytes read are returned too, for streams that cannot be read
/// twice. Damage behind the first bytes is no error here: reading will meet it again.
pub fn sniff(content: &mut dyn Read, name: &Path) -> io::Result<(Format, Vec<u8>)> {
    let mut head = Vec::new();
    for window in WINDOWS {
        let wanted = window - head.len();
        let complete = match content.take(wanted as u64).read_to_end(&mut head) {
            Ok(read) => read < wanted,
            Err(error) if is_damage(&error) => true,
            Err(error) => return Err(error),
        };
        if let Some(format) = detect(&head, complete, name) {
            return Ok((format, head));
        }
    }
    let format = if holds_object_start(&head) { Format::Ndjson } else { text_or_binary(&head, name) };
    Ok((format, head))
}

/// What content that starts with `head` is; `None` where more bytes are needed to tell, never when `head` is `complete`.
fn detect(head: &[u8], complete: bool, name: &Path) -> Option<Format> {
    if let Some(format) = by_magic(head) {
        return Some(format);
    }
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
    match text.first() {
        None if complete => return Some(Named::of(name).of_empty()),
        None => return None,
        Some(b'[') if is_array_of_records(&text[1..], complete, name) => return Some(Format::JsonArray),
        Some(b'{') => {}
        Some(_) => {
            if let Some(delimiter) = csv_delimiter(text, complete, name) {
                return Some(Format::Csv { delimiter });
            }
        }
    }
    match first_object(text) {
        Some(object) => json_objects(object, complete),
        None => complete.then(|| text_or_binary(head, name)),
    }
}

/// Formats known by a fixed first byte sequence.
fn by_magic(head: &[u8]) -> Option<Format> {
    const MAGICS: &[(&[u8], Format)] = &[
        (b"PAR1", Format::Parquet),
        (b"PARE", Format::Unknown("Parquet with an encrypted footer")),
        (b"\x89PNG", Format::Unknown("a PNG image")),
        (b"\xff\xd8\xff", Format::Unknown("a JPEG image")),
        (b"GIF8", Format::Unknown("a GIF image")),
        (b"%PDF-", Format::Unknown("a PDF document")),
        (b"SQLite format 3\0", Format::Unknown("an SQLite database")),
        (b"PK\x03\x04", Format::Unknown("a zip archive: unpack it first")),
        (b"7z\xbc\xaf\x27\x1c", Format::Unknown("a 7z archive: unpack it first")),
        (b"\x7fELF", Format::Unknown("an ELF program")),
        (b"Obj\x01", Format::Unknown("Avro: convert it to Parquet or NDJSON")),
        (b"ORC", Format::Unknown("ORC: convert it to Parquet or NDJSON")),
        (b"ARROW1", Format::Unknown("Arrow IPC: convert it to Parquet")),
        (b"\x04\x22\x4d\x18", Format::Unknown("lz4 data: unpack it first")),
        (b"\x1f\x9d", Format::Unknown("compress (.Z) data: unpack it first")),
        (b"\x1f\x8b\x08", Format::Unknown("compressed twice: unpack it once first")),
        (b"\x28\xb5\x2f\xfd", Format::Unknown("compressed twice: unpack it once first")),
        (b"\xff\xfe", Format::Unknown("UTF-16 text: convert it to UTF-8")),
        (b"\xfe\xff", Format::Unknown("UTF-16 text: convert it to UTF-8")),
    ];
    let tar = head.get(257..262) == Some(b"ustar");
    let magic = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, format)| format);
    magic.or(tar.then_some(Format::Unknown("a tar archive: unpack it first")))
}

/// What a name says, looked at from its end so that `calls.csv.2.gz` says CSV.
#[derive(Clone, Copy, PartialEq)]
enum Named {
    Json,
    Lines,
    Csv,
    Tsv,
    Nothing,
}

impl Named {
    fn of(name: &Path) -> Self {
        let name = name.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let mut said = name.rsplit('.').map(|part| match part {
            "json" => Self::Json,
            "jsonl" | "ndjson" => Self::Lines,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            _ => Self::Nothing,
        });
        said.find(|&named| named != Self::Nothing).unwrap_or(Self::Nothing)
    }

    fn of_empty(self) -> Format {
        self.format().unwrap_or(Format::Ndjson)
    }

    fn format(self) -> Option<Format> {
        match self {
            Self::Json | Self::Lines => Some(Format::Ndjson),
            Self::Csv => Some(Format::Csv { delimiter: b',' }),
            Self::Tsv => Some(Format::Csv { delimiter: b'\t' }),
            Self::Nothing => None,
        }
    }
}

/// Whether text behind a first `[` is an array: log lines start with brackets too.
fn is_array_of_records(behind: &[u8], complete: bool, name: &Path) -> bool {
    let inner = behind.trim_ascii_start();
    match inner.first() {
        Some(b'{') => true,
        Some(b']') => inner[1..].first().is_none_or(|byte| byte.is_ascii_whitespace()),
        None => complete,
        Some(b'"' | b'[' | b'-' | b'0'..=b'9' | b'n' | b't' | b'f') => Named::of(name) == Named::Json,
        Some(_) => false,
    }
}

/// The delimiter under which a text is CSV: its header holds names and most records have as many cells.
fn csv_delimiter(text: &[u8], complete: bool, name: &Path) -> Option<u8> {
    let is_named = matches!(Named::of(name), Named::Csv | Named::Tsv);
    let candidates = b",;\t|".iter().filter_map(|&delimiter| {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text);
        let mut records: Vec<csv::ByteRecord> = reader.byte_records().take(CSV_SAMPLE).flatten().collect();
        // the last record of an incomplete text may be cut
        if !complete && records.len() > 1 && records.len() < CSV_SAMPLE {
            records.pop();
        }
        let (header, rows) = records.split_first()?;
        let agreeing = rows.iter().filter(|row| row.len() == header.len()).count();
        let holds_json = rows.iter().any(|row| row.get(0).is_some_and(|cell| cell.starts_with(b"{")));
        // a sentence has a blank behind its comma
        let is_sentence = header.iter().skip(1).any(|cell| cell.starts_with(b" "));
        let is_csv = agreeing * 2 >= rows.len() && !holds_json && (is_named || !is_sentence);
        let fits = header.len() > 1 && names_columns(header) && is_csv;
        fits.then_some((header.len(), delimiter))
    });
    let best = candidates.max_by_key(|&(cells, _)| cells).map(|(_, delimiter)| delimiter);
    match (best, Named::of(name)) {
        (None, Named::Csv) => Some(b','),
        (None, Named::Tsv) => Some(b'\t'),
        (best, _) => best,
    }
}

/// Whether the cells of a first line can be the names of columns, rather than pieces of a sentence or values.
fn names_columns(header: &csv::ByteRecord) -> bool {
    header.iter().enumerate().all(|(at, cell)| {
        let cell = cell.trim_ascii();
        match cell.first() {
            // data frames are written with a nameless index in front
            None => at == 0,
            Some(first) => {
                (first.is_ascii_alphabetic() || *first == b'_' || *first == b'#' || !first.is_ascii())
                    && cell.len() <= 128
                    && cell.split(|&byte| byte == b' ').count() <= 4
                    && !cell.iter().any(|byte| matches!(byte, b'{' | b'}' | b'=' | b'\n'))
            }
        }
    })
}

/// The text from the first line on that starts a JSON object.
fn first_object(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let line = trim_blanks(rest);
        if let Some(inside) = line.strip_prefix(b"{")
            && matches!(inside.trim_ascii_start().first(), None | Some(b'"' | b'}'))
        {
            return Some(rest);
        }
        rest = &rest[memchr(b'\n', rest)? + 1..];
    }
}

fn holds_object_start(head: &[u8]) -> bool {
    first_object(head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head)).is_some()
}

/// Whether objects stand one on a line, judged by the first and the line behind it; `None` where the line goes on.
fn json_objects(text: &[u8], complete: bool) -> Option<Format> {
    let Some(newline) = memchr(b'\n', text) else {
        return complete.then(|| match closing_brace(text) {
            Closing::At(end) => behind_object(&text[end + 1..]),
            Closing::InString | Closing::Open => Format::Ndjson,
        });
    };
    let (line, below) = text.split_at(newline + 1);
    match closing_brace(line) {
        Closing::At(end) => return Some(behind_object(&line[end + 1..])),
        // JSON strings hold no newline: a damaged line, not an object that spans lines
        Closing::InString => return Some(Format::Ndjson),
        Closing::Open => {}
    }
    let mut lines = below.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let Some(next) = lines.next() else {
        return complete.then_some(Format::Ndjson);
    };
    let asks_for_value = matches!(line.trim_ascii_end().last(), Some(b'[' | b':'));
    let as_far_left = next.len() - trim_blanks(next).len() <= line.len() - trim_blanks(line).len();
    Some(match trim_blanks(next).first() {
        Some(b'{') if as_far_left && !asks_for_value => Format::Ndjson,
        Some(b'{' | b'}' | b'[' | b']' | b'"') => Format::JsonObjects,
        _ => Format::Ndjson,
    })
}

/// Objects that share a line, with commas or without, are no NDJSON.
fn behind_object(rest: &[u8]) -> Format {
    match rest.trim_ascii() {
        b"," | [b'{', ..] => Format::JsonObjects,
        [b',', rest @ ..] if rest.trim_ascii_start().starts_with(b"{") => Format::JsonObjects,
        _ => Format::Ndjson,
    }
}

enum Closing {
    At(usize),
    InString,
    Open,
}

/// Where the first object of a line is closed.
fn closing_brace(line: &[u8]) -> Closing {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, &byte) in line.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string && depth == 1 => return Closing::At(at),
            b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if in_string { Closing::InString } else { Closing::Open }
}

/// What content without any record is: binary by its bytes, else what the name says.
fn text_or_binary(head: &[u8], name: &Path) -> Format {
    let is_control = |byte: &&u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    let controls = head.iter().filter(is_control).count();
    if head.contains(&0) || controls * 20 > head.len() {
        return Format::Unknown("binary data");
    }
    Named::of(name).format().unwrap_or(Format::Text)
}

fn trim_blanks(line: &[u8]) -> &[u8] {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    &line[blanks..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NDJSON: Format = Format::Ndjson;
    const COMMAS: Format = Format::Csv { delimiter: b',' };

    fn format_of(content: impl AsRef<[u8]>, name: &str) -> Format {
        sniff(&mut content.as_ref(), Path::new(name)).unwrap().0
    }

    fn assert_formats(cases: &[(&str, Format)], name: &str) {
        for &(content, format) in cases {
            assert_eq!(format_of(content, name), format, "{content:?} named {name:?}");
        }
    }

    #[test]
    fn one_object_a_line_is_ndjson_whatever_its_name() {
        let cases = [
            ("{\"a\":1}\n{\"a\":2}\n", NDJSON),
            ("{\"a\":1}", NDJSON),
            ("\u{feff}{\"a\":1}\r\n{\"a\":2}\r\n", NDJSON),
            ("\n\n  {\"a\":\"}{\"}\n", NDJSON),
            ("{}\n{}\n", NDJSON),
        ];
        assert_formats(&cases, "x.json");
        assert_formats(&cases, "x.csv");
    }

    #[test]
    fn a_damaged_first_line_does_not_hide_ndjson() {
        assert_formats(
            &[
                ("{\"a\":1,\"b\n{\"a\":2}\n", NDJSON),
                ("{\"a\":1,\"b\":{\"c\":2},\n{\"a\":2}\n", NDJSON),
                ("{\"a\":1,\n\n{\"a\":2}\n", NDJSON),
                ("b\":1}\n{\"a\":2}\n", NDJSON),
                ("{\"a\":1,\"b\":", NDJSON),
                ("{\"a\":1,\nINFO stopped\n{\"a\":2}\n", NDJSON),
            ],
            "x.log",
        );
    }

    #[test]
    fn lines_of_text_before_the_first_record_do_not_hide_ndjson() {
        assert_formats(
            &[
                ("INFO starting\n{\"a\":1}\n", NDJSON),
                ("INFO starting, port 80\n{\"a\":1,\"b\":2}\n", NDJSON),
                ("[2025-06-01 10:00:00] started\n{\"a\":1}\n", NDJSON),
                ("options {debug}\n{\"a\":1}\n", NDJSON),
            ],
            "x.log",
        );
    }

    #[test]
    fn a_banner_longer_than_the_first_window_does_not_hide_ndjson() {
        let banner = "INFO loading shard\n".repeat(10_000);
        assert_eq!(format_of(format!("{banner}{{\"a\":1}}\n"), "x.log"), NDJSON);
        assert_eq!(format_of(banner, "x.log"), Format::Text);
    }

    #[test]
    fn a_first_line_longer_than_any_window_is_ndjson() {
        let long = |length| format!("{{\"a\":\"{}\"}}\n{{\"a\":2}}\n", "x".repeat(length));
        assert_eq!(format_of(long(100_000), "x"), NDJSON);
        assert_eq!(format_of(long(2_000_000), "x"), NDJSON);
    }

    #[test]
    fn arrays_of_records_are_told_from_lines_in_brackets() {
        let array = Format::JsonArray;
        assert_formats(
            &[
                ("[{\"a\":1}]", array),
                (" [\n  {\"a\":1}\n]", array),
                ("[]\n", array),
                ("[\n", array),
                ("[1,{\"a\":1}]", array),
            ],
            "x.json",
        );
        assert_formats(&[("[12:00:01] started\n", Format::Text), ("[worker 1] a\n", Format::Text)], "x.log");
    }

    #[test]
    fn objects_that_span_or_share_lines_are_json_objects() {
        let objects = Format::JsonObjects;
        assert_formats(
            &[
                ("{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}\n", objects),
                ("{\"a\": 1,\n \"b\": 2}", objects),
                ("{\"spans\": [\n{\"a\":1}]}", objects),
                ("{\"a\":1}{\"a\":2}\n", objects),
                ("{\"a\":1},\n{\"a\":2}\n", objects),
                ("{\n}\n", objects),
            ],
            "x.jsonl",
        );
    }

    #[test]
    fn csv_is_known_by_a_header_that_its_records_agree_with() {
        let csv = |delimiter: char| Format::Csv { delimiter: delimiter as u8 };
        assert_formats(
            &[
                ("a,b\n1,2\n", COMMAS),
                ("a;b\r\n1;2,5", csv(';')),
                ("a\tb\n1\t2\n", csv('\t')),
                ("a|b|c\n1|2|3\n", csv('|')),
                (",id,ttft (ms)\n0,x,2\n", COMMAS),
                ("\u{feff}\"a\",\"b\"\n1,\"{\n\"\"x\"\": 1}\"\n2,\"\"\n", COMMAS),
                ("id,body\n1,\"\n{\"\"a\"\":1}\n\"\n", COMMAS),
                ("时间,模型\n1,2\n", COMMAS),
                ("a,b\n1,2\n1\n1,2\n", COMMAS),
                ("Hello, world\nDone\nBye\n", Format::Text),
                ("engine 0.9 starting, pool h100\n12:00 INFO began, late\nready\n", Format::Text),
            ],
            "x.log",
        );
        assert_formats(&[("ttft\n1.5\n", COMMAS)], "x.csv");
        assert_formats(&[("ttft\n1.5\n", COMMAS)], "x.csv.2.gz");
    }

    #[test]
    fn the_name_decides_where_the_content_is_empty_or_says_nothing() {
        assert_formats(&[("", NDJSON), ("\n \n", NDJSON)], "x.parquet");
        assert_formats(&[("", COMMAS)], "x.csv");
        assert_formats(&[("not json\n", NDJSON)], "x.jsonl");
        assert_formats(&[("not json\n", Format::Text)], "x.txt");
    }

    #[test]
    fn other_kinds_are_named() {
        assert_eq!(format_of(b"PAR1\x15\x04", "x.json"), Format::Parquet);
        assert_eq!(format_of(b"\x89PNG\r\n\x1a\n", "x.json"), Format::Unknown("a PNG image"));
        assert_eq!(format_of(b"\x01\x02\0\0\n", "x.json"), Format::Unknown("binary data"));
        let utf16 = format_of(b"\xff\xfe{\0\"\0", "x.json");
        assert_eq!(utf16.to_string(), "UTF-16 text: convert it to UTF-8");
    }
}
