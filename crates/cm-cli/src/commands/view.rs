//! `cm view`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use cm_train::RunFolder;

use crate::view::Server;

#[derive(clap::Args)]
#[command(
    after_help = "The page is served to this machine alone and fetches nothing from elsewhere. Ctrl-C ends it.\n\nExamples:\n  \
        cm view runs/walks\n  cm view runs/walks-cmd1 runs/walks-cmd2 --no-open"
)]
pub(crate) struct Arguments {
    /// Folders of runs, shown side by side.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Open no browser.
    #[arg(long)]
    no_open: bool,
    /// The port; a free one if not given.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    for run in &arguments.runs {
        if !RunFolder::new(run).settings_file().exists() {
            bail!("{}: expected the folder of a run, found no config.toml in it", run.display());
        }
    }
    let server = Server::new(arguments.runs, arguments.port)?;
    let address = server.address()?;
    println!("{address}");
    if !arguments.no_open && !open(&address) {
        eprintln!("no browser could be started; open the address above");
    }
    // An interrupt ends the program: there is nothing to be put in order.
    static NEVER: AtomicBool = AtomicBool::new(false);
    server.serve(&NEVER)
}

/// Starts the system's browser; whether there is one to start.
fn open(address: &str) -> bool {
    let (program, first): (_, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command
        .args(first)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}
