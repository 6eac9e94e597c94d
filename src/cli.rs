//! What was typed: the commands and flags, declared for clap. What they mean is decided in `request`.

mod check;
pub mod completions;
mod flags;
mod generate;
mod id;
mod inspect;
mod latency;
pub mod man;
mod pack;
mod prices;
mod profiles;
mod queries;
mod report;
mod run;
mod sql;
mod trace;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};

pub use check::CheckArgs;
pub use completions::CompletionsArgs;
pub use flags::{GroupFlags, InputFlags, LimitFlags, OutputFlags, ReportFlags, TimeFlags};
pub use generate::GenerateArgs;
pub use id::IdArgs;
pub use inspect::InspectArgs;
pub use latency::LatencyArgs;
pub use man::ManArgs;
pub use pack::PackArgs;
pub use prices::{BookArgs, PricesAction, PricesArgs};
pub use profiles::{ProfilesAction, ProfilesArgs};
pub use queries::QueriesArgs;
pub use report::ReportArgs;
pub use run::RunArgs;
pub use sql::SqlArgs;
pub use trace::TraceArgs;

use crate::request::Word;

/// Answers questions from the logs that LLM serving leaves behind.
///
/// Point it at log files and get the answer: no server, no ingestion. Each command explains itself with --help.
#[derive(Debug, Parser)]
#[command(
    name = "infer-stats",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = EXAMPLES
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats inspect logs/                         what is in these logs?
  infer-stats latency --by input-bucket logs/       which prompts are slow?
  infer-stats latency --stages --since 1h logs/     queue, prefill or decode?
  infer-stats trace req-abc123 logs/                why was this one slow?";

#[derive(Debug, Subcommand)]
pub enum Command {
    Latency(LatencyArgs),
    #[command(flatten)]
    Report(ReportArgs),
    Trace(TraceArgs),
    Id(IdArgs),
    Inspect(InspectArgs),
    Sql(SqlArgs),
    Check(CheckArgs),
    #[command(name = "report")]
    Pack(PackArgs),
    Queries(QueriesArgs),
    Profiles(ProfilesArgs),
    Prices(PricesArgs),
    Run(RunArgs),
    Generate(GenerateArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Lets clap list the words of a closed list in its help, and take no others.
fn choice<T: Word>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::words()).try_map(|word| T::from_word(&word))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_declared_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples_of_itself() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            let example = format!("Examples:\n  infer-stats {}", command.get_name());
            assert!(help.is_some_and(|help| help.starts_with(&example)), "{}", command.get_name());
        }
    }

    #[test]
    fn every_example_can_be_typed() {
        let commands = Cli::command();
        let helps = commands.get_subcommands().chain([&commands]).filter_map(|command| command.get_after_help());
        for help in helps.map(ToString::to_string) {
            for line in help.lines().skip(1) {
                let typed = words(line);
                let parsed = Cli::try_parse_from(&typed);
                assert!(parsed.is_ok(), "{typed:?}: {}", parsed.unwrap_err());
            }
        }
    }

    /// As a shell would split it; the explanation after three blanks is not part of it.
    fn words(line: &str) -> Vec<String> {
        let command = line.trim().split("   ").next().unwrap_or_default();
        let command = command.split(" > ").next().unwrap_or_default();
        command
            .split('"')
            .enumerate()
            .flat_map(|(i, part)| {
                let quoted = i % 2 == 1;
                let words: Vec<&str> = match quoted {
                    true => vec![part],
                    false => part.split_whitespace().collect(),
                };
                words.into_iter().map(str::to_owned)
            })
            .collect()
    }
}
