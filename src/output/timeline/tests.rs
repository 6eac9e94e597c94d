use super::*;

type Story = (&'static str, fn() -> Life);

const STORIES: [Story; 9] = [
    ("slow_queue", stories::slow_queue),
    ("lost_engine", stories::lost_engine),
    ("retried_under_a_new_id", stories::retried),
    ("reconnected_after_the_client_left", stories::reconnected),
    ("starved_by_its_batch", stories::starved),
    ("stalled_at_token_47", stories::stalled),
    ("clock_ahead", stories::skewed),
    ("nothing_known_but_the_id", unfriendly::bare),
    ("hostile_log", unfriendly::hostile),
];

fn screen(lives: &[Life], steps: bool, width: Option<u16>, color: bool) -> String {
    let zone = TimeZone::get("Asia/Shanghai").unwrap();
    let mut out = Vec::new();
    write_lives(lives, &zone, steps, Style { width, color }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn markdown(lives: &[Life], steps: bool) -> String {
    let zone = TimeZone::get("Asia/Shanghai").unwrap();
    let mut out = Vec::new();
    markdown::write_lives(lives, &zone, steps, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Compares with `expected/NAME`; `UPDATE_EXPECTED=1` writes it instead, to be read before it is kept.
fn expect(name: &str, written: &str) {
    let path = format!("{}/src/output/timeline/expected/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, written).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(written == expected, "{name} differs:\n{written}");
}

fn two() -> [Life; 2] {
    let mut usual = stories::slow_queue();
    usual.id = "req-usual-00".to_owned();
    usual.findings.clear();
    for stage in &mut usual.stages {
        if stage.name == "queue" {
            (stage.duration_ms, stage.end_ms, stage.dominant, stage.share) = (35.0, 56.5, false, Some(35.0 / 2_275.0));
        } else if stage.start_ms > 22.0 {
            (stage.start_ms, stage.end_ms) = (stage.start_ms - 2_865.0, stage.end_ms - 2_865.0);
            (stage.dominant, stage.share) = (stage.name == "decode", Some(stage.duration_ms / 2_275.0));
        }
    }
    (usual.length_ms, usual.total_ms) = (2_275.0, Some(2_275.0));
    usual.records.iter_mut().for_each(|record| record.end_ms = record.end_ms.map(|end_ms| end_ms - 2_865.0));
    [usual, stories::slow_queue()]
}

#[test]
fn every_story_reads_as_expected_in_a_terminal_of_80_columns() {
    for (name, life) in STORIES {
        expect(&format!("{name}.txt"), &screen(&[life()], false, Some(80), false));
    }
    expect("slow_queue_beside_a_usual_request.txt", &screen(&two(), false, Some(80), false));
}

#[test]
fn one_story_reads_as_expected_elsewhere() {
    expect("stalled_at_token_47.narrow.txt", &screen(&[stories::stalled()], false, Some(40), false));
    expect("stalled_at_token_47.file.txt", &screen(&[stories::stalled()], false, None, false));
    expect("stalled_at_token_47.md", &markdown(&[stories::stalled()], false));
    expect("slow_queue_beside_a_usual_request.md", &markdown(&two(), false));
    expect("hostile_log.md", &markdown(&[unfriendly::hostile()], false));
    let mut life = stories::stalled();
    life.tokens.iter_mut().for_each(|tokens| _ = tokens.steps.drain(..44));
    life.tokens.iter_mut().for_each(|tokens| tokens.steps.truncate(8));
    expect("steps_around_token_47.txt", &screen(&[life], true, Some(80), false));
}

#[test]
fn the_first_24_lines_show_the_cause_and_the_dominant_stage() {
    for ((name, life), cause) in STORIES.into_iter().zip([
        "queue took 2,900 ms",
        "engine has no record of this id: lost between gateway and engine",
        "retried as req-retry-03",
        "reconnected as req-recon-04b",
        "starved by long outputs in batch-77",
        "token 47: +312 ms, KV miss, 3 neighbours stalled",
        "engine's clock is at least 1,492 ms ahead",
    ]) {
        let screen = screen(&[life()], true, Some(80), false);
        let first: String = screen.lines().take(24).collect::<Vec<_>>().join("\n");
        assert!(first.contains(cause) && first.contains("\n▸ "), "{name}:\n{first}");
    }
}

#[test]
fn long_lists_end_with_how_much_is_left() {
    let mut life = stories::stalled();
    life.findings = vec![life.findings[0].clone(); 43];
    life.stages = vec![life.stages[3].clone(); 53];
    life.events = vec![life.events[0].clone(); 45];
    life.records = vec![life.records[0].clone(); 49];
    let screen = screen(&[life], false, Some(80), false);
    assert_eq!(screen.matches("  … and 37 more (--format json has all)\n").count(), 4, "{screen}");
    assert!(screen.contains("\n  41 more "), "{screen}");
    assert!(screen.lines().position(|line| line.ends_with("share")).unwrap() < 24);
}

#[test]
fn bars_on_the_screen_are_as_long_as_their_part_of_the_axis() {
    for (name, life) in STORIES.into_iter().take(7) {
        let life = life();
        let layout = Layout::of(slice::from_ref(&life), Some(80));
        let screen = screen(slice::from_ref(&life), false, Some(80), false);
        let rows = screen.lines().skip_while(|line| !line.ends_with("share")).skip(1);
        let bar = |line: &str| -> Option<usize> {
            let row = line.split_once(['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█']).is_some();
            let eighths = line.chars().filter_map(|char| "▏▎▍▌▋▊▉█".chars().position(|block| block == char));
            (row && !line.starts_with("  tokens")).then(|| eighths.map(|place| place + 1).sum())
        };
        let drawn: Vec<_> = rows.take_while(|line| !line.is_empty()).filter_map(bar).collect();
        assert_eq!(drawn.len(), life.stages.len(), "{name}:\n{screen}");
        for (stage, drawn) in life.stages.iter().zip(drawn) {
            let exact = (stage.end_ms - stage.start_ms) / life.length_ms * layout.axis.cells as f64 * 8.0;
            assert!((drawn as f64 - exact.max(1.0)).abs() <= 1.0, "{name} {}: {drawn}, not {exact}", stage.name);
        }
    }
}

#[test]
fn whatever_the_logs_say_lines_fit_and_no_control_character_is_written() {
    for seed in 0..500 {
        let random = &mut fastrand::Rng::with_seed(seed);
        let lives: Vec<_> = (0..random.usize(0..4)).map(|_| unfriendly::any(random)).collect();
        let width = random.u16(60..200);
        let plain = screen(&lives, random.bool(), Some(width), false);
        for line in plain.lines() {
            assert!(room::width(line) <= usize::from(width), "seed {seed}, {width} columns: {line:?}");
        }
        let pages = [screen(&lives, true, None, false), screen(&lives, true, Some(random.u16(0..60)), false)];
        for written in pages.iter().chain([&plain, &markdown(&lives, true)]) {
            assert!(
                !written.contains(|char: char| char.is_control() && char != '\n' || char == '\u{202e}'),
                "seed {seed}"
            );
        }
        assert_eq!(
            uncoloured(&screen(&lives, true, Some(80), true)),
            screen(&lives, true, Some(80), false),
            "seed {seed}"
        );
    }
}

/// The text without ANSI colours.
fn uncoloured(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        let (code, rest) = piece.split_once('m').unwrap();
        assert!(code.chars().all(|char| char.is_ascii_digit() || char == ';'), "{code}");
        text + rest
    })
}
