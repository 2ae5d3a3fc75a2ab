//! A page about runs, served to this machine alone.

mod api;
#[cfg(test)]
mod fuzz;
mod http;

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use anyhow::Context;

use self::api::Runs;
use self::http::{Answer, Request};

/// Requests that are answered at the same time; more are turned away.
const MOST_AT_ONCE: usize = 32;

/// A request on its way to the thread that has the models, and the way back.
type Asked = (Request, Sender<Answer>);

/// A server that listens but does not answer yet.
pub(crate) struct Server {
    listener: TcpListener,
    runs: Vec<PathBuf>,
}

impl Server {
    /// Listens on this machine alone, on a free port if `port` is 0.
    pub(crate) fn new(runs: Vec<PathBuf>, port: u16) -> anyhow::Result<Self> {
        let listener = http::listen(port)
            .with_context(|| format!("port {port} of this machine could not be listened on"))?;
        Ok(Self { listener, runs })
    }

    /// Where the page is.
    pub(crate) fn address(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}/", self.listener.local_addr()?))
    }

    /// Answers until `stop` is set.
    pub(crate) fn serve(self, stop: &AtomicBool) -> anyhow::Result<()> {
        let (asks, asked) = channel::<Asked>();
        let Self { listener, runs } = self;
        // Models stay on one thread: networks are not shared between threads.
        std::thread::spawn(move || {
            let mut runs = Runs::new(runs);
            for (request, back) in asked {
                // Whoever has gone away needs no answer.
                let _ = back.send(runs.answer(&request));
            }
        });
        listener.set_nonblocking(true)?;
        let busy = Arc::new(AtomicUsize::new(0));
        while !stop.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let (asks, busy) = (asks.clone(), Busy::enter(&busy));
                    std::thread::spawn(move || converse(stream, &asks, &busy));
                }
                // Nobody there, or a connection that broke before it began.
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(())
    }
}

/// Counts conversations.
struct Busy(Arc<AtomicUsize>, usize);

impl Busy {
    fn enter(count: &Arc<AtomicUsize>) -> Self {
        let before = count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone(), before)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One request, one answer.
fn converse(mut stream: TcpStream, asks: &Sender<Asked>, busy: &Busy) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_write_timeout(Some(Duration::from_secs(10)));
    let answer = if busy.1 >= MOST_AT_ONCE {
        Answer::refusal(503, "too many requests at once")
    } else {
        match http::read(&mut stream) {
            Ok(request) => ask(request, asks),
            Err(refusal) => refusal,
        }
    };
    // The other side may be gone.
    let _ = answer.write(&mut stream);
}

fn ask(request: Request, asks: &Sender<Asked>) -> Answer {
    let (back, answer) = channel();
    let answer = asks.send((request, back)).ok().and_then(|()| answer.recv().ok());
    answer.unwrap_or_else(|| Answer::refusal(500, "no answer was found"))
}
