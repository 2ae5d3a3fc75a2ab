//! Slurm's accounting, which `sacct` asks: slurmdbd and a MariaDB of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::bail;

use super::{Cluster, PORT, call, configuration, until};

/// How long a daemon may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);

impl Cluster {
    /// Starts the database and slurmdbd; waits until both answer.
    pub(super) fn start_accounting(&self, host: &str) -> anyhow::Result<()> {
        let data = self.folder.join("database");
        std::fs::create_dir_all(&data)?;
        let at = |name: &str, path: &PathBuf| format!("--{name}={}", path.display());
        let data = at("datadir", &data);
        call(Command::new("mariadb-install-db").stdout(Stdio::null()).args([
            "--no-defaults",
            "--user=root",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
            &data,
        ]))?;
        let log = std::fs::File::create(self.folder.join("log/database.log"))?;
        let port = PORT + 4;
        Command::new("mariadbd")
            .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", &data])
            .arg(format!("--port={port}"))
            .arg(at("socket", &self.database_socket()))
            .arg(at("pid-file", &self.folder.join("database.pid")))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let grants = "CREATE USER slurm@localhost IDENTIFIED BY 'slurm'; \
                      CREATE USER slurm@127.0.0.1 IDENTIFIED BY 'slurm'; \
                      GRANT ALL ON slurm.* TO slurm@localhost; \
                      GRANT ALL ON slurm.* TO slurm@127.0.0.1;";
        let socket = at("socket", &self.database_socket());
        let ask = |line: &str| {
            let mut command = Command::new("mariadb");
            command.args(["--no-defaults", "--user=root", &socket, "--execute", line]);
            command.output().is_ok_and(|output| output.status.success())
        };
        if !until(PATIENCE, || ask("SELECT 1")) || !ask(grants) {
            bail!("the database is not ready; see {}/log/database.log", self.folder.display());
        }
        let file = self.folder.join("slurmdbd.conf");
        std::fs::write(&file, configuration::accounting(&self.folder, host))?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
        call(&mut self.slurm("slurmdbd"))?;
        let answers = || {
            let output = self.slurm("sacctmgr").args(["--noheader", "list", "cluster"]).output();
            output.is_ok_and(|output| output.status.success())
        };
        if !until(PATIENCE, answers) {
            bail!("slurmdbd does not answer; see {}/log/slurmdbd.log", self.folder.display());
        }
        Ok(())
    }

    fn database_socket(&self) -> PathBuf {
        self.folder.join("database.socket")
    }
}
