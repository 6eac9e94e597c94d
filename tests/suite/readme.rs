//! Everything that the README shows is run: each command of a `console` block prints exactly what stands below it.
//!
//! After a wanted change of some output, `UPDATE_README=1 cargo test readme` writes the new one; the diff is the review.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_command_of_the_readme_prints_what_the_readme_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut renewed = String::new();
    let mut examples = 0;
    let mut rest = readme.as_str();
    while let Some((before, block)) = rest.split_once("```console\n") {
        let (block, after) = block.split_once("```\n").expect("a console block ends");
        renewed += before;
        renewed += "```console\n";
        for command in commands(block) {
            examples += 1;
            renewed += &format!("$ {command}\n{}", run(command));
        }
        renewed += "```\n";
        rest = after;
    }
    renewed += rest;
    assert!(examples > 5, "the README has lost its examples");
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(&path, renewed).unwrap();
    } else {
        assert!(renewed == readme, "{}", first_difference(&readme, &renewed));
    }
}

/// The lines of a console block that a reader would type.
fn commands(block: &str) -> impl Iterator<Item = &str> {
    block.lines().filter_map(|line| line.strip_prefix("$ "))
}

/// Runs a command line in the root of the project, as somebody who just cloned it.
fn run(command: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_infer-stats"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("PATH", path)
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("INFER_STATS_LOGS")
        .env_remove("INFER_STATS_CONFIG")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn first_difference(old: &str, new: &str) -> String {
    let mut lines = old.lines().zip(new.lines()).enumerate();
    match lines.find(|(_, (old, new))| old != new) {
        Some((number, (old, new))) => {
            format!("README.md:{}: shows\n  {old}\nbut the command prints\n  {new}", number + 1)
        }
        None => "the README shows less or more than its commands print".to_owned(),
    }
}
