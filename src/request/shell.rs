//! The shells that completions can be printed for.

use super::Word;

/// A shell by its usual name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    PowerShell,
    Zsh,
}

impl Word for Shell {
    const KIND: &'static str = "shell";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("bash", Shell::Bash),
        ("elvish", Shell::Elvish),
        ("fish", Shell::Fish),
        ("powershell", Shell::PowerShell),
        ("zsh", Shell::Zsh),
    ];
}
