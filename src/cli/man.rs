//! `infer-stats man`: the manual pages, one for the program and one for each command.

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use super::Cli;
use crate::nearest::suggestion;
use crate::request::Mistake;

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// The command whose page is printed [default: the page of infer-stats itself]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats man > infer-stats.1
  infer-stats man latency > infer-stats-latency.1";

/// The page of one command, or of the program; `render` writes it as roff.
pub fn page(command: Option<&str>) -> Result<Man, Mistake> {
    let mut program = Cli::command();
    // Building gives every command its full name, as in infer-stats-latency.
    program.build();
    let Some(name) = command else {
        return Ok(Man::new(program));
    };
    match program.find_subcommand(name) {
        Some(command) => Ok(Man::new(command.clone())),
        None => {
            let names: Vec<&str> = program.get_subcommands().map(|it| it.get_name()).collect();
            Err(Mistake::UnknownWord {
                kind: "command",
                word: name.to_owned(),
                words: names.join(", "),
                hint: suggestion(name, names.iter().copied()),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roff(command: Option<&str>) -> String {
        let mut page = Vec::new();
        self::page(command).unwrap().render(&mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn the_program_and_every_command_have_a_page() {
        assert!(roff(None).contains(".TH infer-stats 1"));
        for command in Cli::command().get_subcommands() {
            let title = format!(".TH infer-stats-{} 1", command.get_name());
            assert!(roff(Some(command.get_name())).contains(&title), "{title}");
        }
    }

    #[test]
    fn a_page_of_an_unknown_command_names_the_nearest() {
        let mistake = page(Some("latncy")).err().unwrap();
        assert!(mistake.to_string().starts_with("unknown command `latncy`; did you mean `latency`?"));
    }
}
