//! Several runs on one page, episodes, fingers, dark systems, walls, and runs that still train.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::browser::Browser;
use crate::{browser, cm, screen, serve_runs};

/// Keeps a picture of the page for somebody to look at, if `CM_SCREENSHOTS` names a folder.
fn picture(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("CM_SCREENSHOTS") {
        browser.screenshot(&Path::new(&folder).join(name));
    }
}

#[test]
fn runs_stand_side_by_side_play_episodes_and_follow_fingers() {
    let Some(mut browser) = browser() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let sets = ["world.states=400", "world.horizon=20", "data.trajectories=50"];
    for method in ["cmd1", "qrl"] {
        let mut arguments = vec!["train", "--env", "pointmaze", "--method", method];
        arguments.extend(["--steps", "30", "--batch", "16", "--name", method]);
        let sets = sets.map(|set| format!("task.point-maze.{set}"));
        sets.iter().for_each(|set| arguments.extend(["--set", set.as_str()]));
        arguments.extend(["--set", "evaluation.episodes=4"]);
        cm(folder, &arguments);
    }
    let server = serve_runs(folder, &["runs/cmd1", "runs/qrl"]);
    browser.open(&server.address);
    browser.wait("document.body.dataset.ready === 'true'");
    let titles = browser.text("view.runs.map((run) => run.title.textContent).join()");
    assert!(titles.contains("cmd1: CMD-1") && titles.contains("qrl: QRL"), "{titles}");
    // One scale for both: the ends are the least and the largest of all.
    let all = "view.runs.flatMap((run) => [...run.values]).filter(Number.isFinite)";
    assert_eq!(browser.number(&format!("view.range[0] - Math.min(...{all})")), 0.0);
    assert_eq!(browser.number(&format!("view.range[1] - Math.max(...{all})")), 0.0);
    let side = "view.runs.map((run) => run.canvas.getBoundingClientRect().top)";
    assert_eq!(browser.number(&format!("{side}[0] - {side}[1]")), 0.0);

    // A tap on one map moves the goal of both.
    let before = browser.text("view.runs.map((run) => run.values.join()).join()");
    let (x, y) = ("view.runs[1].states[20]", "view.runs[1].states[21]");
    let (x, y) = (browser.number(x), browser.number(y));
    let place = screen(&mut browser, 1, x, y);
    browser.tap(place);
    browser.wait(&format!("Math.hypot(view.goal[0] - {x}, view.goal[1] - {y}) < 0.2"));
    browser.wait("view.shown === view.wanted");
    for run in 0..2 {
        let now = browser.text(&format!("view.runs[{run}].values.join()"));
        assert!(!before.contains(&now), "run {run} shows what it showed before");
    }
    picture(&mut browser, "several.png");

    browser.evaluate("view.runs[0].button.click()");
    browser.wait("/^(Arrived|Not there) after \\d+ steps/.test(view.runs[0].result.textContent)");
    assert!(browser.number("view.runs[0].episode.length") > 1.0);
    picture(&mut browser, "episode.png");

    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = browser.text(paper);
    browser.scheme("dark");
    browser.wait(&format!("{paper} !== '{light}'"));
    let corner = "view.runs[0].canvas.getContext('2d').getImageData(0, 0, 1, 1).data[3]";
    assert_eq!(browser.number(corner), 0.0, "the map's ground is the page's");
    picture(&mut browser, "dark.png");
}

#[test]
fn curves_grow_while_a_run_trains_and_its_map_comes_when_there_is_one() {
    let Some(mut browser) = browser() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    cm(folder, &["data", "walks", "ring", "ring.csv", "--walks", "60"]);
    let mut training = Command::new(env!("CARGO_BIN_EXE_cm"))
        .args(["train", "--data", "ring.csv", "--name", "ring", "--batch", "64"])
        .args(["--steps", "100000", "--set", "log_every=10", "--set", "checkpoint_every=100"])
        .args(["--set", "held_out.patience=1000"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = std::time::Instant::now();
    while !folder.join("runs/ring/config.toml").exists() {
        assert!(started.elapsed().as_secs() < 60);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let server = serve_runs(folder, &["runs/ring"]);
    browser.open(&server.address);
    browser.wait("document.body.dataset.ready === 'true'");
    let points = "document.querySelector('#curves polyline').getAttribute('points').length";
    browser.wait("document.querySelectorAll('#curves polyline').length > 0");
    let before = browser.number(points);
    browser.wait(&format!("{points} > {before}"));
    browser.wait("view.runs[0].values && view.runs[0].values.length === 3600");
    let version = browser.number("view.runs[0].about.version");
    browser.wait(&format!("view.runs[0].about.version > {version}"));
    picture(&mut browser, "training.png");
    training.kill().unwrap();
    training.wait().unwrap();
}

/// Needs MuJoCo, which makes the data too.
#[test]
fn walls_of_a_maze_are_drawn() {
    let Some(mut browser) = browser() else { return };
    match cm_envs::mujoco::Mujoco::find() {
        Ok(_) => {}
        Err(reason) if std::env::var_os("CM_REQUIRE_MUJOCO").is_none() => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let data = ["data", "generate", "antmaze-umaze", "--transitions", "3000", "--out", "a.cmdata"];
    cm(folder, &data);
    let train = ["train", "--env", "antmaze-umaze-v2", "--data", "a.cmdata", "--name", "ant"];
    let small = ["--steps", "5", "--batch", "16", "--method", "crl"];
    let few = ["--set", "evaluation.episodes=1", "--set", "evaluate_every=0"];
    cm(folder, &[&train[..], &small, &few].concat());
    let server = serve_runs(folder, &["runs/ant"]);
    browser.open(&server.address);
    browser.wait("document.body.dataset.ready === 'true'");
    assert_eq!(browser.number("view.runs[0].about.walls.length"), 18.0);
    // The middle of a wall has the wall's colour, the free cell beside the start's has not.
    let colour = |browser: &mut Browser, x: f64, y: f64| {
        browser.text(&format!(
            "(() => {{ const c = view.runs[0].canvas, [x, y] = pixel(c, [{x}, {y}]); \
             return c.getContext('2d').getImageData(x, y, 1, 1).data.join(); }})()"
        ))
    };
    let (wall, other) = (colour(&mut browser, 0.0, 4.0), colour(&mut browser, -4.0, -4.0));
    assert!(wall == other && wall.ends_with(",255"), "{wall} {other}");
    assert_ne!(colour(&mut browser, 8.0, 4.0), wall);
    picture(&mut browser, "walls.png");
    // On other coordinates there is no plane for walls to stand in.
    browser.evaluate("element('up').value = 5; element('up').onchange({ target: element('up') })");
    assert_eq!(browser.number("walls(view.runs[0]).length"), 0.0);
}
