//! The command: parse, run, print one error, exit code.

use std::process::ExitCode;

use clap::Parser;
use infer_stats::cli::Cli;
use infer_stats::engine::mistake::SqlMistake;
use infer_stats::output;
use infer_stats::record::Column;
use infer_stats::report::mistake::ReportMistake;
use infer_stats::request::{Mistake, Place, Task};
use infer_stats::run::run;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match resolve(cli).and_then(run) {
        Ok(ending) => ExitCode::from(ending.exit_code()),
        Err(error) => {
            output::say(format_args!("infer-stats: {error:#}"));
            let wrong_usage = error.is::<Mistake>() || error.is::<SqlMistake>() || error.is::<ReportMistake>();
            ExitCode::from(if wrong_usage { 2 } else { 1 })
        }
    }
}

fn resolve(cli: Cli) -> anyhow::Result<Task> {
    let columns: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
    Ok(Task::resolve(cli, &Place::here()?, &columns)?)
}
