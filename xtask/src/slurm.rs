//! `cargo xtask slurm`: a Slurm cluster of two nodes on this one machine, reached from it alone.
//!
//! Debian's and Ubuntu's packages `slurm-wlm` and `munge`; everything else is in one folder, and
//! nothing under `/etc` is changed. The commands of Slurm find the cluster by `SLURM_CONF`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// Where everything of the cluster is.
const FOLDER: &str = "target/slurm";
const PROGRAMS: [&str; 6] = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel"];
/// From here on upwards: the controller, then the nodes.
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
    },
    /// End it.
    Down,
    /// End one node without a word, as a machine that fails.
    KillNode {
        /// node1 or node2.
        node: String,
    },
    /// Start a node that was ended.
    StartNode {
        /// node1 or node2.
        node: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cluster = Cluster { folder: std::path::absolute(FOLDER)? };
    match &arguments.command {
        Action::Up { install } => cluster.up(*install),
        Action::Down => cluster.down(),
        Action::KillNode { node } => cluster.kill(node),
        Action::StartNode { node } => cluster.start_node(node),
    }
}

struct Cluster {
    folder: PathBuf,
}

impl Cluster {
    fn up(&self, install: bool) -> anyhow::Result<()> {
        if install {
            let packages = ["install", "-y", "--no-install-recommends", "slurm-wlm", "munge"];
            call(Command::new("apt-get").args(packages))?;
        }
        let missing = PROGRAMS.iter().filter(|program| !is_there(program)).collect::<Vec<_>>();
        if !missing.is_empty() {
            bail!(
                "{missing:?} not found: `cargo xtask slurm up --install` gets slurm-wlm and munge"
            );
        }
        self.down()?;
        for folder in ["state", "log", "node1", "node2", "munge"] {
            std::fs::create_dir_all(self.folder.join(folder))?;
        }
        self.start_munge()?;
        std::fs::write(self.configuration(), self.text()?)?;
        std::fs::write(self.folder.join("cgroup.conf"), "CgroupAutomount=no\n")?;
        call(Command::new("slurmctld").arg("-f").arg(self.configuration()).arg("-c"))?;
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

    fn start_node(&self, node: &str) -> anyhow::Result<()> {
        check_node(node)?;
        call(Command::new("slurmd").arg("-f").arg(self.configuration()).args(["-N", node]))?;
        // A node that failed stays out until somebody says that it is well.
        let update = ["update", &format!("NodeName={node}"), "State=RESUME"];
        let _ = self.slurm("scontrol").args(update).output();
        Ok(())
    }

    fn kill(&self, node: &str) -> anyhow::Result<()> {
        check_node(node)?;
        self.end(&self.folder.join(node).join("slurmd.pid"), "-KILL")
    }

    fn down(&self) -> anyhow::Result<()> {
        if self.configuration().exists() {
            let _ = self.slurm("scancel").args(["--me"]).output();
        }
        let files = ["node1/slurmd.pid", "node2/slurmd.pid", "slurmctld.pid"];
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
            let started = Instant::now();
            while there() && started.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let _ = std::fs::remove_file(file);
        Ok(())
    }

    fn wait_until_idle(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let output = self.slurm("sinfo").args(["--noheader", "--format=%D %T"]).output()?;
            if String::from_utf8_lossy(&output.stdout).trim() == "2 idle" {
                return Ok(());
            }
            if started.elapsed() > Duration::from_secs(60) {
                bail!("the nodes are not ready after a minute; see {}/log", self.folder.display());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn slurm(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.configuration());
        command
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    /// Two nodes with two slots each, whatever the machine has; no accounting, no cgroups.
    fn text(&self) -> anyhow::Result<String> {
        let folder = self.folder.display();
        let output = Command::new("hostname").output().context("could not start hostname")?;
        let host = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let (first, second) = (PORT + 1, PORT + 2);
        Ok(format!(
            "ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={PORT}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={MUNGE}/socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmctldTimeout=10
SlurmdTimeout=10
MessageTimeout=5
KillWait=5
MinJobAge=300
SchedulerParameters=sched_interval=2,bf_interval=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=2 RealMemory=2000
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=2 RealMemory=2000
PartitionName=main Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
"
        ))
    }
}

const MUNGE: &str = "/run/cm-munge";

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
