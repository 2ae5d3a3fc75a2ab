//! A headless Chromium, driven by its debugging protocol over two named pipes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};

/// How long the page may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Browser {
    child: Child,
    asks: File,
    answers: File,
    read: Vec<u8>,
    session: Option<String>,
    count: u64,
    _folder: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// None if there is no Chromium.
    pub(crate) fn start() -> Option<Self> {
        let named = std::env::var("CM_CHROMIUM").ok();
        let usual = ["chromium", "chromium-browser", "google-chrome"].map(str::to_owned);
        let works = |program: &String| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let program = named.into_iter().chain(usual).find(works)?;
        let folder = tempfile::tempdir().ok()?;
        let (asks, answers) = (folder.path().join("asks"), folder.path().join("answers"));
        for pipe in [&asks, &answers] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        // The browser reads from descriptor 3 and writes to 4.
        let script = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --no-first-run \
             --user-data-dir=\"$3\" --window-size=900,1000 --remote-debugging-pipe about:blank \
             3<\"$1\" 4>\"$2\"";
        let child = Command::new("sh")
            .args(["-c", script, &program])
            .args([&asks, &answers, &folder.path().join("profile")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let asks = OpenOptions::new().write(true).open(asks).unwrap();
        let answers = File::open(answers).unwrap();
        let (read, session, count) = (Vec::new(), None, 0);
        Some(Self { child, asks, answers, read, session, count, _folder: folder })
    }

    pub(crate) fn open(&mut self, address: &str) {
        let target = self.call("Target.createTarget", json!({ "url": address }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", attach);
        self.session = session["sessionId"].as_str().map(str::to_owned);
    }

    /// Sends a message and waits for its answer.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.count += 1;
        let mut message = json!({ "id": self.count, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.asks.write_all(message.to_string().as_bytes()).unwrap();
        self.asks.write_all(&[0]).unwrap();
        loop {
            let answer = self.receive();
            if answer["id"] == json!(self.count) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// Messages end with a zero.
    fn receive(&mut self) -> Value {
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == 0) {
                let message: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).unwrap();
            }
            let mut piece = [0; 65536];
            let count = self.answers.read(&mut piece).unwrap();
            assert!(count > 0, "the browser has gone");
            self.read.extend_from_slice(&piece[..count]);
        }
    }

    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", parameters)["result"]["value"].clone()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        let value = self.evaluate(expression);
        value.as_f64().unwrap_or_else(|| panic!("{expression}: {value}"))
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.evaluate(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression}: {value}")).to_owned()
    }

    pub(crate) fn wait(&mut self, condition: &str) {
        let started = Instant::now();
        while self.evaluate(condition) != json!(true) {
            let body = "document.body && document.body.innerText";
            assert!(started.elapsed() < PATIENCE, "{condition}: {}", self.evaluate(body));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64)) {
        let button = json!({
            "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1,
        });
        self.call("Input.dispatchMouseEvent", button);
    }

    pub(crate) fn click(&mut self, place: (f64, f64)) {
        self.mouse("mousePressed", place);
        self.mouse("mouseReleased", place);
    }

    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mousePressed", from);
        for part in 1..=5 {
            let share = f64::from(part) / 5.0;
            let between = |a: f64, b: f64| a + share * (b - a);
            self.mouse("mouseMoved", (between(from.0, to.0), between(from.1, to.1)));
        }
        self.mouse("mouseReleased", to);
    }

    pub(crate) fn key(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key }));
        }
    }

    /// A finger that taps.
    pub(crate) fn tap(&mut self, (x, y): (f64, f64)) {
        self.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": true }));
        for (kind, points) in [("touchStart", json!([{ "x": x, "y": y }])), ("touchEnd", json!([]))]
        {
            let touch = json!({ "type": kind, "touchPoints": points });
            self.call("Input.dispatchTouchEvent", touch);
        }
    }

    /// As somebody sees the page whose system is dark, or light.
    pub(crate) fn scheme(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    pub(crate) fn screenshot(&mut self, file: &Path) {
        let found = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let text = found["data"].as_str().unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}
