//! `cm view` in a real browser, and requests that no browser sends.

mod browser;
mod several;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use browser::Browser;

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cm(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// A run on a small ring, served.
fn serve(folder: &Path) -> Server {
    cm(folder, &["data", "walks", "ring", "ring.csv", "--walks", "60"]);
    let train =
        ["train", "--data", "ring.csv", "--name", "ring", "--steps", "300", "--batch", "64"];
    cm(folder, &train);
    serve_runs(folder, &["runs/ring"])
}

fn serve_runs(folder: &Path, runs: &[&str]) -> Server {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cm"))
        .args(["view", "--no-open"])
        .args(runs)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    Server { child, address: address.trim().to_owned() }
}

impl Server {
    /// What is answered to bytes, whatever they are.
    fn raw(&self, bytes: &[u8]) -> String {
        let place = self.address.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(place).unwrap();
        // The server may have refused before all is sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes())
    }
}

#[test]
fn hostile_requests_are_refused_and_harm_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let server = serve(scratch.path());
    assert!(server.address.starts_with("http://127.0.0.1:"), "{}", server.address);
    let status = |answer: &str| answer.split(' ').nth(1).unwrap_or_default().to_owned();
    let good =
        ["/", "/page.css", "/api/runs", "/api/states?run=0", "/api/curves?run=0", "/favicon.ico"];
    for path in good.into_iter().chain(["/page.js", "/draw.js", "/curves.js"]) {
        assert_eq!(status(&server.get(path)), "200", "{path}");
    }
    let bad = [
        ("/../ring.csv", "404"),
        ("/runs/ring/config.toml", "404"),
        ("/%2e%2e/%2e%2e/etc/passwd", "404"),
        ("/api/states?run=1", "404"),
        ("/api/states?run=-1", "400"),
        ("/api/states?run=../../x", "400"),
        ("/api/map?run=0", "400"),
        ("/api/map?run=0&to=1", "400"),
        ("/api/map?run=0&to=1,nan", "400"),
        ("/api/map?run=0&to=1,2&from=1,2", "400"),
        ("/api/map?run=0&to=1e999,2", "400"),
        ("/api/distance?run=0&from=1,2", "400"),
        ("/api/episode?run=0", "400"),
    ];
    for (path, wanted) in bad {
        assert_eq!(status(&server.get(path)), wanted, "{path}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "a".repeat(100_000));
    let raw: [(&[u8], &str); 6] = [
        (b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "421"),
        (b"GET / HTTP/1.1\r\n\r\n", "421"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "413"),
        (b"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "400"),
        (long.as_bytes(), "431"),
    ];
    for (bytes, wanted) in raw {
        assert_eq!(status(&server.raw(bytes)), wanted, "{:?}", &bytes[..bytes.len().min(40)]);
    }
    // Half a request from each of many, then a whole one.
    let place = server.address.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let idle: Vec<_> = (0..10).map(|_| TcpStream::connect(&place).unwrap()).collect();
    assert_eq!(status(&server.get("/")), "200");
    drop(idle);
    assert_eq!(status(&server.get("/api/map?run=0&to=10,0")), "200");
}

/// None, said on stderr, where there is no browser.
fn browser() -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        let required = std::env::var_os("CM_REQUIRE_BROWSER").is_some_and(|text| !text.is_empty());
        assert!(!required, "there is no Chromium");
        eprintln!("SKIPPED: no Chromium was found; set CM_CHROMIUM to its program");
    }
    browser
}

/// Where a state is on the screen, margins included.
fn screen(browser: &mut Browser, run: usize, x: f64, y: f64) -> (f64, f64) {
    let place = |part: usize| {
        format!(
            "(() => {{ const c = view.runs[{run}].canvas, b = c.getBoundingClientRect(); \
             const p = pixel(c, [{x}, {y}]); \
             return [b.left + p[0] * b.width / c.width, b.top + p[1] * b.height / c.height][{part}]; }})()"
        )
    };
    (browser.number(&place(0)), browser.number(&place(1)))
}

/// Load, click, see the map change, drag, and read the number that `cm distance` prints.
#[test]
fn the_page_works_in_a_browser() {
    let Some(mut browser) = browser() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let server = serve(scratch.path());
    browser.open(&server.address);
    browser.wait("document.body.dataset.ready === 'true'");
    let sum = "view.runs[0].values.filter(Number.isFinite).reduce((a, b) => a + b, 0)";
    let before = browser.number(sum);
    let at = |browser: &mut Browser, x, y| screen(browser, 0, x, y);
    let goal = at(&mut browser, -10.0, 0.0);
    browser.click(goal);
    browser.wait("Math.abs(view.goal[0] + 10) < 0.2 && view.wanted > 1");
    browser.wait(&format!("Math.abs({sum} - {before}) > 1e-3"));

    // The start is dragged; the page then says what the program says.
    let start = "[view.start[0], view.start[1]]";
    let (x, y) = (browser.number(&format!("{start}[0]")), browser.number(&format!("{start}[1]")));
    let (from, to) = (at(&mut browser, x, y), at(&mut browser, 0.0, -10.0));
    browser.drag(from, to);
    browser.wait("Math.abs(view.start[1] + 10) < 0.3");
    browser.wait("view.runs[0].path && Math.abs(view.runs[0].path.states[0][1] + 10) < 0.3");
    let text = |browser: &mut Browser, what: &str| browser.text(&format!("view.{what}.join()"));
    let (from, to) = (text(&mut browser, "start"), text(&mut browser, "goal"));
    browser.wait("view.shown === view.wanted");
    let shown = browser.text("view.runs[0].result.textContent");
    let printed = cm(scratch.path(), &["distance", "runs/ring", "--from", &from, "--to", &to]);
    let (_, words) = printed.trim().split_once("]: ").unwrap();
    assert_eq!(shown, format!("From start to goal: {words}"));

    // By keyboard, and the other direction.
    browser.evaluate("view.runs[0].canvas.focus()");
    browser.key("ArrowUp");
    browser.wait(&format!("view.goal.join() !== '{to}'"));
    browser.key("d");
    browser
        .wait("view.direction === 'from' && document.getElementById('direction').value === 'from'");
    browser.wait("document.querySelectorAll('#curves polyline').length > 0");
    if let Some(file) = std::env::var_os("CM_SCREENSHOT") {
        browser.screenshot(Path::new(&file));
    }
}
