//! The command: parse, run, print one error, exit code.

use std::process::ExitCode;

use clap::Parser;
use infer_stats::cli::Cli;
use infer_stats::record::Column;
use infer_stats::request::{Mistake, Place, Task};
use infer_stats::run::run;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match resolve(cli).and_then(run) {
        Ok(ending) => ExitCode::from(ending.exit_code()),
        Err(error) => {
            eprintln!("infer-stats: {error:#}");
            ExitCode::from(if error.is::<Mistake>() { 2 } else { 1 })
        }
    }
}

fn resolve(cli: Cli) -> anyhow::Result<Task> {
    let columns: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
    Ok(Task::resolve(cli, &Place::here()?, &columns)?)
}
