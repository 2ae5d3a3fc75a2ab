//! A script in Python that answers questions with numbers, as a baseline.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// A script run by `$PYTHON` or `python3`: a line on its input is a question, a number on its
/// output the answer.
pub struct Script {
    child: Child,
}

impl Script {
    /// Starts the script of this name and text; `None`, with the reason on the terminal, if it does
    /// not answer `first_question`. The text is part of the benchmark's program, which then runs on
    /// machines without this folder too.
    pub fn start(name: &str, text: &str, first_question: impl Display) -> Option<Self> {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let child = Command::new(&python)
            .args(["-c", text])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut started = Self { child };
        let answer = started.ask(first_question);
        if answer.is_none() {
            println!("{python} cannot run {name}: no comparison with Python");
        }
        answer.map(|_| started)
    }

    /// The answer to a question.
    pub fn ask(&mut self, question: impl Display) -> Option<f64> {
        writeln!(self.child.stdin.as_mut()?, "{question}").ok()?;
        let mut line = String::new();
        BufReader::new(self.child.stdout.as_mut()?).read_line(&mut line).ok()?;
        line.trim().parse().ok()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // Its input ends, and with it the script.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
