//! `cm completions`: completion scripts.

use clap::CommandFactory;
use clap_complete::Shell;

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  cm completions bash > ~/.local/share/bash-completion/completions/cm"
)]
pub(crate) struct Arguments {
    /// Which shell.
    shell: Shell,
}

pub(crate) fn run<Program: CommandFactory>(arguments: &Arguments) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Program::command(), "cm", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(())
}
