use super::*;

fn options() -> Options {
    Options { epoch: None, now: "2026-11-30T12:00:00Z".parse().unwrap(), zone: TimeZone::UTC }
}

fn best(id: &str) -> Decoded {
    decode(id, &options()).into_iter().next().unwrap()
}

/// Form, time, instance and sequence of the likeliest reading; `-` is none.
fn read(id: &str) -> String {
    let Decoded { form, time, instance, sequence, .. } = best(id);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    format!("{form} {} {} {}", or_none(time.map(|time| time.to_string())), or_none(instance), or_none(sequence))
}

/// The ids that specifications and makers publish, and what they say of them.
const PUBLISHED: [(&str, &str); 22] = [
    (
        "C232AB00-9414-11EC-B3C8-9F6BDECED846",
        "uuid-1 2022-02-22T19:22:22Z node 9f:6b:de:ce:d8:46, clock sequence 13256 -",
    ),
    ("5df41881-3aed-3515-88a7-2f4a814cf09e", "uuid-3 - - -"),
    ("919108f7-52d1-4320-9bac-f847db4148a8", "uuid-4 - - -"),
    ("2ed6657d-e927-568b-95e1-2665a8aea6a2", "uuid-5 - - -"),
    (
        "1EC9414C-232A-6B00-B3C8-9F6BDECED846",
        "uuid-6 2022-02-22T19:22:22Z node 9f:6b:de:ce:d8:46, clock sequence 13256 -",
    ),
    ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "uuid-7 2022-02-22T19:22:22Z - -"),
    ("2489E9AD-2EE2-8E00-8EC9-32D5F69181C0", "uuid-8 - - -"),
    ("00000000-0000-0000-0000-000000000000", "uuid-nil - - -"),
    ("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "uuid-max - - -"),
    ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid 2016-07-30T23:54:10.259Z - -"),
    ("user_01h455vb4pex5vsknk084sn02q", "typeid 2023-06-30T03:34:18.518Z - -"),
    ("1541815603606036480", "snowflake 2022-06-28T16:07:40.105Z 378 0"),
    ("175928847299117063", "snowflake 2016-04-30T11:18:25.796Z 32 7"),
    ("1972aef1100-gw1-17", "counted 2025-06-01T10:00:00Z gw1 17"),
    ("0197a3f2c1d0-07-00042", "counted 2025-06-24T21:58:05.008Z 07 42"),
    ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "traceparent - - -"),
    ("00f067aa0ba902b7", "span-id - - -"),
    ("1-5759e988-bd862e3fe1be46a994272793", "xray 2016-06-09T22:11:20Z - -"),
    ("0ujtsYcgvSTl8PAuAdqWYSMnLOv", "ksuid 2017-10-10T04:00:47Z - -"),
    ("6836b0b2c0ffee0123456789", "objectid 2025-05-28T06:44:02Z process c0ffee0123 4548489"),
    ("resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b", "openai 2025-03-08T23:29:02Z - -"),
    ("resp_0888a46cbf2b1ff3006914596e05d08195a77c3f5187b769a7", "openai 2025-11-12T09:54:54Z - -"),
];

#[test]
fn published_ids_are_read_as_their_specifications_say() {
    for (id, expected) in PUBLISHED {
        assert_eq!(read(id), expected, "{id}");
    }
}

#[test]
fn dates_are_read_however_they_are_parted() {
    for (id, expected) in [
        ("req_20250601_00042", "dated 2025-06-01T00:00:00Z - 42"),
        ("req20250601-42", "dated 2025-06-01T00:00:00Z - 42"),
        ("job-2025-06-01-42", "dated 2025-06-01T00:00:00Z - 42"),
        ("20250601_083015_42", "dated 2025-06-01T08:30:15Z - 42"),
        ("20250601083015-42", "dated 2025-06-01T08:30:15Z - 42"),
        ("20250601083015123", "dated 2025-06-01T08:30:15.123Z - -"),
        ("20250601T083015Z.gw1.42", "dated 2025-06-01T08:30:15Z gw1 42"),
        ("20250601-gw-1-42", "dated 2025-06-01T00:00:00Z gw-1 42"),
        ("20250601-a1b2", "dated 2025-06-01T00:00:00Z - -"),
        ("20250601", "unknown - - -"),
        ("20250631-42", "unknown - - -"),
        ("2025060142", "unknown - - -"),
    ] {
        assert_eq!(read(id), expected, "{id}");
    }
}

#[test]
fn a_date_without_a_zone_is_read_in_the_one_given() {
    let zone = TimeZone::get("Asia/Shanghai").unwrap();
    let local = |id| decode(id, &Options { zone: zone.clone(), ..options() }).remove(0);
    assert_eq!(local("req_20250601_1").time, Some("2025-05-31T16:00:00Z".parse().unwrap()));
    assert!(local("req_20250601_1").note.unwrap().ends_with("read in Asia/Shanghai"));
    assert_eq!(local("20250601T083015Z-1").time, Some("2025-06-01T08:30:15Z".parse().unwrap()));
}

#[test]
fn six_digits_at_the_end_are_a_number_and_the_time_they_could_be_is_said() {
    let decoded = best("20250601-083015");
    assert_eq!((decoded.resolution, decoded.sequence.as_deref()), (Some("day"), Some("83015")));
    assert_eq!(decoded.note.unwrap(), "read in UTC; its number could be the time 08:30:15");
}

#[test]
fn unix_times_are_read_alone_and_before_an_instance_and_a_number() {
    for (id, expected) in [
        ("1748772000000", "epoch 2025-06-01T10:00:00Z - -"),
        ("1748772000000-gw1-17", "epoch 2025-06-01T10:00:00Z gw1 17"),
        ("req_1748772000_17", "epoch 2025-06-01T10:00:00Z - 17"),
        ("1748772000123456", "epoch 2025-06-01T10:00:00.123456Z - -"),
        ("1748772000", "unknown - - -"),
        ("1748772000000-gw1-x", "unknown - - -"),
    ] {
        assert_eq!(read(id), expected, "{id}");
    }
}

#[test]
fn prefixes_and_suffixes_are_taken_off_and_said() {
    for (id, form, note) in [
        ("req-1972aef1100-gw1-17", "counted", "without the prefix `req-`"),
        ("msg_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid", "without the prefix `msg_`"),
        ("请求-01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid", "without the prefix `请求-`"),
        ("req017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "uuid-7", "without the prefix `req`"),
        ("Root=1-5759e988-bd862e3fe1be46a994272793", "xray", "without the prefix `Root=`"),
        (
            "chatcmpl-919108f752d143209bacf847db4148a8",
            "uuid-4",
            "without the prefix `chatcmpl-`; could also be: trace id",
        ),
        (
            "cmpl-919108f7-52d1-4320-9bac-f847db4148a8-0",
            "uuid-4",
            "without the prefix `cmpl-`; without the suffix `-0`",
        ),
    ] {
        let decoded = best(id);
        assert_eq!((decoded.form, decoded.note.as_deref()), (form, Some(note)), "{id}");
    }
}

#[test]
fn uuids_are_read_however_they_are_written() {
    let written = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    let ways =
        [written.to_uppercase(), written.replace('-', ""), format!("{{{written}}}"), format!("URN:UUID:{written}")];
    for id in ways {
        assert_eq!(read(&id), "uuid-7 2022-02-22T19:22:22Z - -", "{id}");
    }
}

#[test]
fn the_node_of_a_uuid_1_is_a_machine_or_random() {
    let random = best("C232AB00-9414-11EC-B3C8-9F6BDECED846");
    let card = best("C232AB00-9414-11EC-B3C8-001B21AABBCC");
    assert_eq!((random.random_bits, card.random_bits), (Some(47), Some(0)));
    assert!(random.note.unwrap().contains("random") && card.note.unwrap().contains("network card"));
}

#[test]
fn what_an_id_does_not_hold_is_named() {
    for (id, not_encoded, random_bits) in [
        ("919108f7-52d1-4320-9bac-f847db4148a8", "time, instance, sequence", Some(122)),
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "instance, sequence", Some(74)),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "instance, sequence", Some(80)),
        ("req_20250601_00042", "time of day, instance", None),
        ("1972aef1100-gw1-17", "nothing", Some(0)),
    ] {
        let decoded = best(id);
        assert_eq!((decoded.not_encoded.as_deref(), decoded.random_bits), (Some(not_encoded), random_bits), "{id}");
    }
}

#[test]
fn a_traceparent_names_its_parts_and_a_bad_one_is_called_invalid() {
    let note = |id: &str| best(id).note.unwrap();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    assert_eq!(
        note(&format!("00-{trace}-00f067aa0ba902b7-01")),
        format!("version 00, trace {trace}, caller's span 00f067aa0ba902b7, sampled")
    );
    assert!(note(&format!("00-{trace}-00f067aa0ba902b7-00")).ends_with("not sampled"));
    assert!(note(&format!("00-{trace}-0000000000000000-01")).contains("invalid"));
    assert!(note(&format!("ff-{trace}-00f067aa0ba902b7-01")).contains("invalid"));
    assert_eq!(best(&format!("00-{trace}-00f067aa0ba902b7-01-more")).form, "traceparent");
    assert!(note(&format!("00-{trace}-00f067aa0ba902b7-01-more")).contains("without the suffix `-more`"));
}

#[test]
fn the_epoch_of_a_snowflake_is_guessed_and_the_other_guesses_are_said() {
    let flake = best("1050118621198921728");
    assert_eq!(flake.title, "snowflake of Twitter's epoch");
    assert_eq!(
        flake.note.unwrap(),
        "epoch guessed: 2010-11-04T01:42:54.657Z; instance 347 is worker 27 of datacenter 10; \
         could also be: snowflake of Discord's epoch (2022-12-07T18:36:29.554Z)"
    );
}

#[test]
fn a_given_epoch_is_the_only_one() {
    let epoch = Some("2024-01-01T00:00:00Z".parse().unwrap());
    let read = |id| decode(id, &Options { epoch, ..options() });
    let all = read("941815603606036480");
    assert_eq!((all[0].title, all.len()), ("no known form", 1));
    assert!(
        all[0]
            .note
            .as_ref()
            .unwrap()
            .starts_with("looks like snowflake of the given epoch, but its time would be 2031-")
    );
    // one second after the epoch
    let first = &read("4194304000")[0];
    assert_eq!(first.form, "unknown");
    let day = &read(&(86_400_000_i64 << 22 | 5 << 12 | 3).to_string())[0];
    assert_eq!((day.time, day.instance.as_deref()), (Some("2024-01-02T00:00:00Z".parse().unwrap()), Some("5")));
}

#[test]
fn a_time_that_no_request_has_is_said_and_not_shown() {
    for (id, form, note) in [
        (
            "507f1f77bcf86cd799439011",
            "unknown",
            "looks like ObjectId, but its time would be 2012-10-17T21:13:27Z, outside 2015 to 2027",
        ),
        (
            "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "unknown",
            "looks like ULID, but its time would be beyond every calendar, outside 2015 to 2027",
        ),
        (
            "ffffffff-ffff-7fff-8fff-ffffffffffff",
            "uuid-7",
            "no time: its time would be beyond every calendar, outside 2015 to 2027",
        ),
    ] {
        let decoded = best(id);
        assert_eq!((decoded.form, decoded.time, decoded.resolution), (form, None, None), "{id}");
        assert_eq!(decoded.note.as_deref(), Some(note), "{id}");
    }
}

#[test]
fn next_year_can_be_meant_and_the_one_after_it_cannot() {
    let at = |time: &str| {
        let time: Timestamp = time.parse().unwrap();
        read(&format!("{:011x}-a-1", time.as_millisecond()))
    };
    assert_eq!(at("2015-01-01T00:00:00Z"), "counted 2015-01-01T00:00:00Z a 1");
    assert_eq!(at("2027-12-31T23:59:59.999Z"), "counted 2027-12-31T23:59:59.999Z a 1");
    assert_eq!(at("2014-12-31T23:59:59.999Z"), "unknown - - -");
    assert_eq!(at("2028-01-01T00:00:00Z"), "unknown - - -");
}

#[test]
fn text_without_a_form_is_a_row_that_says_so() {
    for (id, note) in [
        ("req-slowqueue-01", "no known form"),
        ("msg_011CSHoEeqs5C35K2UUqR7Fy", "no known form"),
        ("deadbeefcafe0123456789abcdef0123456789ab", "no known form"),
        ("+17f22e2-79b0-7cc3-98c4-dc0c0c07398f", "no known form"),
        ("请求", "no known form"),
        (" \t", "empty"),
        (&"x".repeat(1_000_000), "longer than any known form"),
    ] {
        let all = decode(id, &options());
        assert_eq!((all.len(), all[0].form, all[0].note.as_deref()), (1, "unknown", Some(note)), "{id:.40}");
        assert!(!all[0].is_known() && all[0].id == id);
    }
}

/// Every published id with each character left out or replaced by, or standing before, one that parsers trip over.
#[test]
fn no_text_is_too_odd_to_be_read() {
    const ODD: [&str; 8] = ["", "-", "+", "f", "é", "\u{202e}", "\0", "9"];
    for (id, _) in PUBLISHED.into_iter().chain([("9999-12-31-235959-1", ""), ("99991231235959123-1", "")]) {
        for (place, odd) in (0..id.len()).flat_map(|place| ODD.map(|odd| (place, odd))) {
            for behind in [place, place + 1] {
                assert!(!decode(&format!("{}{odd}{}", &id[..place], &id[behind..]), &options()).is_empty());
            }
        }
        for time in [Timestamp::MIN, Timestamp::MAX] {
            assert!(!decode(id, &Options { epoch: Some(time), now: time, zone: TimeZone::UTC }).is_empty());
        }
    }
}
