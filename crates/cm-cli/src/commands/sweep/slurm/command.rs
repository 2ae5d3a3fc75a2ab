//! Slurm's own commands, called with a time limit.

use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// What a command printed, if it succeeded in time.
pub(super) fn call(program: &str, arguments: &[String], limit: Duration) -> anyhow::Result<String> {
    let mut child = match Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("`{program}` was not found: expected Slurm's commands on this machine")
        }
        Err(error) => return Err(error).with_context(|| format!("could not start `{program}`")),
    };
    let output = child.stdout.take().map(read);
    let errors = child.stderr.take().map(read);
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            bail!("`{program}` gave no answer within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = |thread: Option<std::thread::JoinHandle<String>>| {
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    };
    let (output, errors) = (text(output), text(errors));
    if !status.success() {
        let lines = errors.lines().map(str::trim).filter(|line| !line.is_empty());
        bail!("{program} failed: {}", lines.collect::<Vec<_>>().join("; "));
    }
    Ok(output)
}

fn read(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Whether an error says that Slurm no longer knows a job: it is over.
pub(super) fn is_forgotten(error: &anyhow::Error) -> bool {
    error.to_string().contains("Invalid job id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_absent_fails_or_hangs_is_named() {
        let second = Duration::from_secs(1);
        let shell = |line: &str, limit| call("sh", &["-c".to_owned(), line.to_owned()], limit);
        assert_eq!(shell("echo 17", second * 20).unwrap(), "17\n");
        let error = call("no-such-slurm", &[], second).unwrap_err().to_string();
        assert!(error.contains("`no-such-slurm` was not found"), "{error}");
        let error = shell("echo a >&2; echo b >&2; exit 3", second * 20).unwrap_err().to_string();
        assert_eq!(error, "sh failed: a; b");
        let error = shell("exec sleep 30", second).unwrap_err().to_string();
        assert!(error.contains("no answer within 1 s"), "{error}");
    }
}
