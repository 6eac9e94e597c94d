//! `infer-stats completions`: scripts that let a shell complete the commands and flags.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell as Generator;

use super::{Cli, choice};
use crate::request::Shell;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    #[arg(value_name = "SHELL", value_parser = choice::<Shell>())]
    pub shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  infer-stats completions bash > ~/.local/share/bash-completion/completions/infer-stats
  infer-stats completions zsh > ~/.zfunc/_infer-stats
  infer-stats completions fish > ~/.config/fish/completions/infer-stats.fish";

/// Writes the completion script of `shell`.
pub fn write(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Elvish => Generator::Elvish,
        Shell::Fish => Generator::Fish,
        Shell::PowerShell => Generator::PowerShell,
        Shell::Zsh => Generator::Zsh,
    };
    // The generator panics where its writer fails, so it writes to memory, and only the copy can fail.
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut Cli::command(), "infer-stats", &mut script);
    out.write_all(&script)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Word;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for (word, shell) in Shell::WORDS {
            let mut script = Vec::new();
            write(*shell, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("input-buckets"), "{word}");
        }
    }
}
