//! `gpumodel completions`: completions of verbs and options for a shell.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Outcome;
use super::output::stdout;

/// Writes the completions of verbs and options for a shell to standard output
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel completions bash > ~/.local/share/bash-completion/completions/gpumodel\n  \
    gpumodel completions zsh > \"${fpath[1]}/_gpumodel\"\n  \
    gpumodel completions fish > ~/.config/fish/completions/gpumodel.fish")]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut command = super::Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "gpumodel", &mut script);
    stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
