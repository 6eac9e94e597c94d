//! `infer-stats NAME` for every report in `queries/`: its flags are the parameters that its header declares.

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, ValueHint};

use super::ReportFlags;
use super::flags::by_help;
use crate::report::catalog::{Catalog, Query};
use crate::report::parameter::{OPTIONAL, Parameter, ParameterKind, REQUIRED};
use crate::request::{Metric, Word};

/// A report and values for its parameters, as typed.
#[derive(Debug)]
pub struct ReportArgs {
    pub name: String,
    /// Only those that were typed.
    pub parameters: Vec<(String, String)>,
    pub report: ReportFlags,
}

/// Reports with flags of their own design.
const TYPED: [&str; 1] = ["latency"];

fn queries() -> impl Iterator<Item = &'static Query> {
    Catalog::embedded().iter().filter(|query| !TYPED.contains(&query.name.as_str()))
}

/// A command of two words, as in `baseline save`.
fn in_group(query: &Query) -> Option<(&str, &str)> {
    query.name.split_once(' ')
}

/// The groups of commands, and the reports that are commands of their own.
fn commands() -> Vec<Command> {
    let mut groups: Vec<Command> = Vec::new();
    for (group, _) in queries().filter_map(in_group) {
        if groups.iter().any(|command| command.get_name() == group) {
            continue;
        }
        let members = || queries().filter(|query| in_group(query).is_some_and(|(other, _)| other == group));
        // a report may have others under its name: `cost`, and `cost close`
        if let Some(query) = queries().find(|query| query.name == group) {
            let command = self::command(query)
                .args_conflicts_with_subcommands(true)
                .subcommand_negates_reqs(true)
                .disable_help_subcommand(true);
            groups.push(command.subcommands(members().map(self::command)));
            continue;
        }
        let questions: Vec<&str> = members().map(|query| query.header.question.as_str()).collect();
        let command = Command::new(group.to_owned())
            .about(questions.join(" "))
            .subcommand_required(true)
            .arg_required_else_help(true)
            .after_help(examples(members()));
        groups.push(command.subcommands(members().map(self::command)));
    }
    let is_new = |query: &&Query| groups.iter().all(|command| command.get_name() != query.name);
    let alone: Vec<Command> =
        queries().filter(|query| in_group(query).is_none()).filter(is_new).map(self::command).collect();
    groups.extend(alone);
    groups
}

fn examples<'a>(queries: impl Iterator<Item = &'a Query>) -> String {
    let examples = queries.flat_map(|query| &query.header.examples);
    format!("Examples:\n{}", examples.map(|example| format!("  infer-stats {example}")).collect::<Vec<_>>().join("\n"))
}

fn command(query: &Query) -> Command {
    let header = &query.header;
    let command = Command::new(in_group(query).map_or(query.name.as_str(), |(_, name)| name).to_owned());
    let command = header.parameters.iter().fold(command, |command, parameter| command.arg(flag(parameter)));
    let has_column = header.parameters.iter().any(|parameter| parameter.name == "column");
    let command = ReportFlags::augment_args(command);
    let command = match has_column {
        // the report's own comes first
        true => command.mut_arg("columns", |arg| arg.long("add-column")),
        false => command,
    };
    command.about(header.question.clone()).long_about(None).after_help(examples(std::iter::once(query)))
}

fn flag(parameter: &Parameter) -> Arg {
    let arg = Arg::new(parameter.name.clone()).long(parameter.flag()).help(capitalised(&parameter.help));
    match parameter.kind {
        ParameterKind::Flag => return arg.action(ArgAction::SetTrue),
        ParameterKind::Dimensions if parameter.name == "by" => {
            let help = by_help(&parameter.default);
            return arg.value_name("LIST").value_delimiter(',').action(ArgAction::Append).long_help(help);
        }
        _ => {}
    }
    let arg = match parameter.kind {
        ParameterKind::Dimensions | ParameterKind::Metrics | ParameterKind::Percentiles => {
            arg.value_name("LIST").value_delimiter(',').action(ArgAction::Append)
        }
        ParameterKind::Metric => arg.value_name("METRIC").value_parser(PossibleValuesParser::new(Metric::words())),
        ParameterKind::Choice => {
            arg.value_name("WORD").value_parser(PossibleValuesParser::new(parameter.choices.clone()))
        }
        ParameterKind::Integer | ParameterKind::Number => arg.value_name("N").allow_negative_numbers(true),
        ParameterKind::Time => arg.value_name("TIME"),
        ParameterKind::Span => arg.value_name("SPAN"),
        ParameterKind::Replay => arg.value_name("LIMITS"),
        ParameterKind::Table | ParameterKind::Book | ParameterKind::Bill => {
            arg.value_name("FILE").value_hint(ValueHint::FilePath)
        }
        ParameterKind::Side => arg.value_name("VALUE"),
        _ => arg.value_name("TEXT"),
    };
    match parameter.default.as_str() {
        "" => arg,
        OPTIONAL if parameter.kind == ParameterKind::Book => arg,
        REQUIRED => arg.required(true),
        default => arg.default_value(default.to_owned()),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl Subcommand for ReportArgs {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(commands())
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        queries().any(|query| query.name == name || in_group(query).is_some_and(|(group, _)| group == name))
    }
}

impl FromArgMatches for ReportArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let unknown = || Error::new(ErrorKind::InvalidSubcommand);
        let (first, typed) = matches.subcommand().ok_or_else(unknown)?;
        let (name, typed) = match typed.subcommand() {
            Some((second, typed)) => (format!("{first} {second}"), typed),
            None => (first.to_owned(), typed),
        };
        let query = queries().find(|query| query.name == name).ok_or_else(unknown)?;
        let parameters = query.header.parameters.iter().filter_map(|parameter| {
            let value = match parameter.kind {
                ParameterKind::Flag => typed.get_flag(&parameter.name).to_string(),
                _ => typed.get_many::<String>(&parameter.name)?.cloned().collect::<Vec<_>>().join(","),
            };
            Some((parameter.name.clone(), value))
        });
        let parameters = parameters.collect();
        Ok(Self { name, parameters, report: ReportFlags::from_arg_matches(typed)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
