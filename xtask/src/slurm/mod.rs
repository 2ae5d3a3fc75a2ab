//! `cargo xtask slurm`: a Slurm cluster of two nodes on this one machine, reached from it alone.
//!
//! Debian's and Ubuntu's packages `slurm-wlm` and `munge`, and for the accounting `slurmdbd` and
//! `mariadb-server`; everything else is in one folder, and nothing under `/etc` is changed. The commands of Slurm find the cluster by `SLURM_CONF`.

mod accounting;
mod configuration;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// Where everything of the cluster is.
const FOLDER: &str = "target/slurm";
const PROGRAMS: [&str; 6] = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel"];
const OF_ACCOUNTING: [&str; 3] = ["slurmdbd", "mariadbd", "mariadb-install-db"];
/// From here on upwards: the controller, the nodes, the accounting, its database.
const PORT: u16 = 26_817;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Start a cluster of two nodes on this machine; needs root, and the packages slurm-wlm and
    /// munge, which `--install` gets.
    Up {
        /// Get the packages with apt-get first.
        #[arg(long)]
        install: bool,
        /// With accounting, which `sacct` asks; takes the packages slurmdbd and mariadb-server.
        #[arg(long)]
        accounting: bool,
    },
    /// End it.
    Down,
    /// End one node's daemon without a word: Slurm cannot reach it, but its tasks go on.
    KillNode {
        /// node1 or node2.
        node: String,
        /// End its tasks too, as a machine that loses power.
        #[arg(long)]
        tasks: bool,
    },
    /// Start a node that was ended.
    StartNode {
        /// node1 or node2.
        node: String,
    },
    /// End the controller without a word; tasks go on.
    KillController,
    /// Start the controller that was ended, with the jobs that it had.
    StartController,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cluster = Cluster { folder: std::path::absolute(FOLDER)? };
    match &arguments.command {
        Action::Up { install, accounting } => cluster.up(*install, *accounting),
        Action::Down => cluster.down(),
        Action::KillNode { node, tasks } => cluster.kill(node, *tasks),
        Action::StartNode { node } => cluster.start_node(node),
        Action::KillController => cluster.end(&cluster.folder.join("slurmctld.pid"), "-KILL"),
        Action::StartController => cluster.start_controller(&[]),
    }
}

struct Cluster {
    folder: PathBuf,
}

impl Cluster {
    fn up(&self, install: bool, accounting: bool) -> anyhow::Result<()> {
        let mut packages = vec!["slurm-wlm", "munge"];
        let mut programs = PROGRAMS.to_vec();
        if accounting {
            packages.extend(["slurmdbd", "mariadb-server"]);
            programs.extend(OF_ACCOUNTING);
        }
        if install {
            let mut command = Command::new("apt-get");
            command.env("DEBIAN_FRONTEND", "noninteractive");
            command.args(["install", "-y", "--no-install-recommends"]);
            call(command.args(&packages))?;
        }
        let missing = programs.iter().filter(|program| !is_there(program)).collect::<Vec<_>>();
        if !missing.is_empty() {
            let packages = packages.join(", ");
            bail!("{missing:?} not found: with `--install`, this command gets {packages}");
        }
        self.down()?;
        for folder in ["state", "log", "node1", "node2"] {
            std::fs::create_dir_all(self.folder.join(folder))?;
        }
        self.start_munge()?;
        let host = host()?;
        let text = configuration::slurm(&self.folder, &host, accounting);
        std::fs::write(self.configuration(), text)?;
        std::fs::write(self.folder.join("cgroup.conf"), "CgroupAutomount=no\n")?;
        if accounting {
            self.start_accounting(&host)?;
        }
        self.start_controller(&["-c"])?;
        self.start_node("node1")?;
        self.start_node("node2")?;
        self.wait_until_idle()?;
        println!("export SLURM_CONF={}", self.configuration().display());
        Ok(())
    }

    /// Munge tells Slurm's programs who asks. It wants folders that nobody else can write to, so it
    /// has its own under /run.
    fn start_munge(&self) -> anyhow::Result<()> {
        let (key, run) = (self.munge("key"), Path::new(MUNGE));
        std::fs::create_dir_all(run)?;
        let random = std::fs::File::open("/dev/urandom").and_then(|mut file| {
            let mut bytes = [0; 128];
            std::io::Read::read_exact(&mut file, &mut bytes)?;
            Ok(bytes)
        })?;
        std::fs::write(&key, random)?;
        call(Command::new("chmod").arg("0600").arg(&key))?;
        call(Command::new("chmod").arg("0755").arg(run))?;
        let option = |name: &str, file: &str| format!("--{name}={}", self.munge(file).display());
        call(Command::new("munged").arg("--force").args([
            option("key-file", "key"),
            option("socket", "socket"),
            option("pid-file", "pid"),
            option("log-file", "log"),
            option("seed-file", "seed"),
        ]))
    }

    fn munge(&self, file: &str) -> PathBuf {
        Path::new(MUNGE).join(file)
    }

    fn start_controller(&self, arguments: &[&str]) -> anyhow::Result<()> {
        call(Command::new("slurmctld").arg("-f").arg(self.configuration()).args(arguments))
    }

    fn start_node(&self, node: &str) -> anyhow::Result<()> {
        check_node(node)?;
        call(Command::new("slurmd").arg("-f").arg(self.configuration()).args(["-N", node]))?;
        // A node that failed stays out until somebody says that it is well.
        let update = ["update", &format!("NodeName={node}"), "State=RESUME"];
        let _ = self.slurm("scontrol").args(update).output();
        Ok(())
    }

    fn kill(&self, node: &str, tasks: bool) -> anyhow::Result<()> {
        check_node(node)?;
        self.end(&self.folder.join(node).join("slurmd.pid"), "-KILL")?;
        if tasks {
            self.tasks_of(node).iter().for_each(|process| {
                // One that has ended meanwhile is what is wanted.
                let _ = Command::new("kill").args(["-KILL", process]).output();
            });
        }
        Ok(())
    }

    /// The processes of a node's tasks, by the environment that Slurm gives them, and what watches
    /// over them: else Slurm would hear of their end.
    fn tasks_of(&self, node: &str) -> Vec<String> {
        let read = |process: &str, file: &str| {
            let text = std::fs::read(Path::new("/proc").join(process).join(file));
            String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
        };
        let named = format!("SLURMD_NODENAME={node}");
        let folder = self.folder.display().to_string();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let process = entry.file_name().to_string_lossy().into_owned();
            let environment = read(&process, "environ");
            let here = environment.split('\0').any(|variable| variable == named)
                && environment.contains(&folder);
            if !here || process.parse::<u32>().is_err() {
                continue;
            }
            let status = read(&process, "status");
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            let parent = parent.map(|parent| parent.trim().to_owned());
            // Those that watch die first.
            let watches = |parent: &String| read(parent, "cmdline").starts_with("slurmstepd");
            if let Some(parent) = parent.filter(watches) {
                found.insert(0, parent);
            }
            found.push(process);
        }
        found
    }

    fn down(&self) -> anyhow::Result<()> {
        if self.configuration().exists() {
            let _ = self.slurm("scancel").args(["--me"]).output();
        }
        let files = [
            "node1/slurmd.pid",
            "node2/slurmd.pid",
            "slurmctld.pid",
            "slurmdbd.pid",
            "database.pid",
        ];
        let files = files.map(|file| self.folder.join(file)).into_iter().chain([self.munge("pid")]);
        files.into_iter().try_for_each(|file| self.end(&file, "-TERM"))?;
        let _ = std::fs::remove_dir_all(&self.folder);
        let _ = std::fs::remove_dir_all(MUNGE);
        Ok(())
    }

    /// Sends a signal to the process that a file names, and waits for its end.
    fn end(&self, file: &Path, signal: &str) -> anyhow::Result<()> {
        let Ok(text) = std::fs::read_to_string(file) else { return Ok(()) };
        let process = text.trim();
        let there = || Path::new("/proc").join(process).exists();
        if process.parse::<u32>().is_ok() && there() {
            call(Command::new("kill").args([signal, process]))?;
            until(Duration::from_secs(20), || !there());
        }
        let _ = std::fs::remove_file(file);
        Ok(())
    }

    fn wait_until_idle(&self) -> anyhow::Result<()> {
        let idle = || {
            let output = self.slurm("sinfo").args(["--noheader", "--format=%D %T"]).output();
            output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == "2 idle")
        };
        if !until(Duration::from_secs(60), idle) {
            bail!("the nodes are not ready after a minute; see {}/log", self.folder.display());
        }
        Ok(())
    }

    fn slurm(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.configuration());
        command
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }
}

const MUNGE: &str = "/run/cm-munge";

/// Waits until something holds; whether it did in time.
fn until(patience: Duration, holds: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}

/// The name of this machine, as Slurm knows it.
fn host() -> anyhow::Result<String> {
    let output = Command::new("hostname").output().context("could not start hostname")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn check_node(node: &str) -> anyhow::Result<()> {
    if !["node1", "node2"].contains(&node) {
        bail!("expected node1 or node2, found `{node}`");
    }
    Ok(())
}

/// Whether a program is where the system looks for it, or where it keeps its daemons.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn call(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("could not start {name}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}
