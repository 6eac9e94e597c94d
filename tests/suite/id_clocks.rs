//! `clocks`: the times that ids were made at.

use serde_json::{Value, json};

use crate::command::Workspace;

/// 2025-06-01T10:00:00Z
const START: i64 = 1_748_772_000_000;

/// One request a second, its id made by a clock that is `ahead` of the record's, in milliseconds.
fn found(id: impl Fn(i64, i64) -> String, ahead: impl Fn(i64) -> i64) -> Vec<String> {
    let record = |number: i64| {
        let made = START + number * 1000 + ahead(number);
        json!({"request_id": id(made, number), "timestamp": format!("2025-06-01T10:00:{number:02}Z"), "input_tokens": 5})
    };
    let records: Vec<Value> = (0..30).map(record).collect();
    let report = Workspace::with_records(&records).report(&["clocks", "log.ndjson"]);
    let shown = |row: &Value| {
        format!("{}: {} of {}, {}", row["check"], row["found"], row["of"], row["example"]).replace('"', "")
    };
    report.rows().iter().map(shown).collect()
}

fn counted(made: i64, number: i64) -> String {
    format!("{made:011x}-gw1-{number}")
}

fn uuid(made: i64, number: i64) -> String {
    let made = format!("{made:012x}");
    format!("{}-{}-7{number:03x}-8000-{number:012x}", &made[..8], &made[8..])
}

fn snowflake(made: i64, number: i64) -> String {
    (((made - 1_288_834_974_657) << 22) | (3 << 12) | number).to_string()
}

fn ulid(made: i64, number: i64) -> String {
    let digit = |place: i64| char::from(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[(made >> (5 * place) & 31) as usize]);
    (0..10).rev().map(digit).collect::<String>() + &format!("{number:016}")
}

#[test]
fn right_clocks_are_silent_whatever_the_delay() {
    assert_eq!(found(counted, |_| 0), [""; 0]);
    for id in [uuid, snowflake, ulid] {
        assert_eq!(found(id, |_| 0), [""; 0]);
        // every fifth came three seconds after its id was made
        assert_eq!(found(id, |number| if number % 5 == 0 { -3000 } else { 0 }), [""; 0]);
    }
}

#[test]
fn a_clock_that_went_back_stays_behind() {
    let back = |number: i64| if number >= 20 { -5000 } else { 0 };
    for id in [uuid, snowflake, ulid] {
        let expected = format!("the clock that ids are made from went back: 1 of 30, {}", id(START + 15_000, 20));
        assert_eq!(found(id, back), [expected]);
    }
    let expected = [
        "an id's number goes back while its time goes on: 4 of 30, 1972aef4f80-gw1-16",
        "the clock that ids are made from went back: 1 of 30, 1972aef4b98-gw1-20",
    ];
    assert_eq!(found(counted, back), expected);
}

#[test]
fn whole_hours_between_an_id_and_its_record_are_a_zone() {
    for id in [counted, uuid, snowflake, ulid] {
        let first = id(START - 8 * 3_600_000, 0);
        assert_eq!(
            found(id, |_| -8 * 3_600_000),
            [format!("an id's time is hours off its record's: 30 of 30, {first}: -8.0 h")]
        );
    }
}

#[test]
fn text_without_a_time_is_no_clock() {
    assert_eq!(found(|_, number| format!("{:032x}", number * 7_919_777), |_| 0), [""; 0]);
    assert_eq!(found(|_, number| (900_000_000_000_000_000 - number * 77_777_777_777_777).to_string(), |_| 0), [""; 0]);
    assert_eq!(found(|_, number| format!("{number:08x}-0000-4000-8000-000000000000"), |_| 0), [""; 0]);
}
