//! The shell script of a task.

use std::path::Path;

use super::settings::SlurmSettings;

/// Exit status of a task that was stopped before its runs were done.
pub(super) const STOPPED: u8 = 75;
/// Exit status of a task whose failure is worth another attempt.
pub(super) const AGAIN: u8 = 76;

/// What the script is about.
pub(super) struct Script<'a> {
    pub(super) settings: &'a SlurmSettings,
    pub(super) program: &'a Path,
    /// Folder of all runs.
    pub(super) out: &'a Path,
    /// Folder of the submission.
    pub(super) submission: &'a Path,
    pub(super) number: u32,
    /// How often a task that is killed goes back to the queue.
    pub(super) retries: u32,
}

impl Script<'_> {
    /// The script waits for `cm` and decides whether the task goes back to the queue: after Slurm's
    /// warning that its time is over, after a failure that is worth another attempt, or if it was
    /// killed (for memory, say) and the plan has retries left.
    ///
    /// `cm` ignores SIGTERM, which Slurm sends to every process of a task that it ends; the script
    /// turns it into the interrupt that makes a checkpoint.
    pub(super) fn text(&self) -> String {
        let setup = self.settings.setup.iter().map(|line| format!("{line}\n")).collect::<String>();
        let program = quoted(&self.program.display().to_string());
        let (out, number) = (quoted(&self.out.display().to_string()), self.number);
        let deaths = quoted(&self.submission.join("deaths").display().to_string());
        let retries = self.retries;
        format!(
            "#!/bin/bash
{setup}again=no signalled=no
trap 'again=yes; signalled=yes; kill -INT $child 2>/dev/null' USR1
trap 'signalled=yes; kill -INT $child 2>/dev/null' TERM
(trap '' TERM; exec {program} sweep task {out} --submission {number} --index \
$SLURM_ARRAY_TASK_ID) &
child=$!
while :; do
    signalled=no
    wait $child
    status=$?
    [ $signalled = yes ] || break
done
if [ $status -gt 128 ]; then
    echo $status >> {deaths}/$SLURM_ARRAY_TASK_ID
    [ $(wc -l < {deaths}/$SLURM_ARRAY_TASK_ID) -le {retries} ] && again=yes
fi
[ $status = {AGAIN} ] && again=yes
[ $status = 0 ] && again=no
if [ $again = yes ]; then
    echo \"task $SLURM_ARRAY_TASK_ID goes back to the queue (exit status $status)\"
    # Slurm's controller may be away for a moment.
    for attempt in 1 2 3 4 5 6; do
        scontrol requeue ${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID && exit 0
        sleep 5
    done
fi
[ $status = {STOPPED} ] && exit 0
exit $status
"
        )
    }
}

/// One word for a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs the script with a program in the place of `cm` and a `scontrol` that only speaks.
    fn outcome(program: &str, retries: u32, times: u32) -> (Option<i32>, String) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("it's here");
        std::fs::create_dir_all(folder.join("deaths")).unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::write(&file, format!("#!/bin/bash\n{text}\n")).unwrap();
            let status = Command::new("chmod").arg("+x").arg(&file).status().unwrap();
            assert!(status.success());
            file
        };
        let program = write("cm", program);
        // The first time it is called it finds nobody, as while the controller is started again.
        write("scontrol", "[ -e \"$0.called\" ] || ! touch \"$0.called\" && echo called $*");
        write("sleep", "exec /bin/sleep 0$(( $1 < 5 ))");
        let settings = SlurmSettings { setup: vec!["export A=1".into()], ..Default::default() };
        let script = Script {
            settings: &settings,
            program: &program,
            out: &folder,
            submission: &folder,
            number: 1,
            retries,
        };
        let file = write("task.sh", &script.text());
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut last = (None, String::new());
        for _ in 0..times {
            let mut command = Command::new("bash");
            command.arg(&file).env("PATH", &path);
            command.env("SLURM_ARRAY_JOB_ID", "7").env("SLURM_ARRAY_TASK_ID", "3");
            let output = command.output().unwrap();
            last = (output.status.code(), String::from_utf8(output.stdout).unwrap());
        }
        last
    }

    #[test]
    fn tasks_go_back_to_the_queue_when_they_should_and_not_else() {
        let requeued = |(code, text): (Option<i32>, String)| {
            assert!(code.is_some(), "{text}");
            (code.unwrap(), text.contains("called requeue 7_3"))
        };
        // Ends with this status when it is interrupted, which follows from the script's signal.
        let signalled = |signal: &str, status: u8| {
            format!("trap 'exit {status}' INT; kill -{signal} $PPID; sleep 1 & wait; exit {status}")
        };
        assert_eq!(requeued(outcome("exit 0", 1, 1)), (0, false));
        assert_eq!(requeued(outcome("[ $A = 1 ] && exit 4", 1, 1)), (4, false));
        assert_eq!(requeued(outcome("exit 76", 0, 1)), (0, true));
        // Stopped by whoever ends the task.
        assert_eq!(requeued(outcome(&signalled("TERM", 75), 0, 1)), (0, false));
        // Warned by Slurm.
        assert_eq!(requeued(outcome(&signalled("USR1", 75), 0, 1)), (0, true));
        assert_eq!(requeued(outcome(&signalled("USR1", 0), 0, 1)), (0, false));
        // Killed.
        assert_eq!(requeued(outcome("kill -KILL $$", 0, 1)), (137, false));
        assert_eq!(requeued(outcome("kill -KILL $$", 2, 2)), (0, true));
        assert_eq!(requeued(outcome("kill -KILL $$", 2, 3)), (137, false));
    }
}
