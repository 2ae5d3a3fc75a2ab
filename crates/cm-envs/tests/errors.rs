//! Bad input: clear errors that name the place, the expected and the found, and files that survive.

mod common;

use std::path::{Path, PathBuf};

use cm_envs::tabular::{
    ControlledProcess, Discount, Grid, GridRules, HeatMap, MarkovChain, Move, Policy, Sampling,
    Start, Wind, load, save,
};
use common::gamma;

/// A fresh folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("errors-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[track_caller]
fn assert_says<T>(result: Result<T, cm_envs::Error>, parts: &[&str]) {
    let Err(error) = result else { panic!("expected an error with {parts:?}") };
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
}

#[test]
fn discounts_lie_strictly_between_0_and_1() {
    for value in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
        assert_says(
            Discount::new(value),
            &["discount", "strictly between 0 and 1", &value.to_string()],
        );
    }
    assert!(toml::from_str::<std::collections::HashMap<String, Discount>>("gamma = 1.5").is_err());
}

#[test]
fn rows_must_be_distributions() {
    let chain = |rows: &[f64]| MarkovChain::from_dense(2, rows);
    assert_says(chain(&[1.0, 0.0, 0.5, 0.4]), &["state 1", "sum to 1", "0.9"]);
    assert_says(chain(&[1.0, 0.0, f64::NAN, 1.0]), &["state 1, entry 0", "[0, 1]", "NaN"]);
    assert_says(chain(&[1.5, -0.5, 0.0, 1.0]), &["state 0, entry 0", "[0, 1]", "1.5"]);
    assert_says(chain(&[-0.5, 1.0, 0.0, 1.0]), &["state 0, entry 0", "-0.5"]);
    assert_says(chain(&[0.0, 0.0, 0.0, 1.0]), &["state 0", "sum to 1", "found 0"]);
    assert_says(chain(&[1.0, 0.0, 1.0]), &["transitions", "expected 4 entries", "found 3"]);
    assert_says(MarkovChain::from_dense(0, &[]), &["states", "at least 1"]);
    assert_says(
        MarkovChain::from_fn(2, |_| [(5, 1.0)]),
        &["state 0, next state", "below 2", "found 5"],
    );
    let process = ControlledProcess::from_fn(2, 3, |_, action| [(0, action as f64)]);
    assert_says(process, &["state 0, action 0", "sum to 1", "found 0"]);
    assert_says(ControlledProcess::from_dense(2, 0, &[]), &["actions", "at least 1"]);
    // Within rounding of 1 a row is taken, and repeated successors are added up.
    let chain = MarkovChain::from_fn(1, |_| [(0, 0.3), (0, 0.7 + 1e-12)]).unwrap();
    assert_eq!(chain.successors(0).collect::<Vec<_>>(), [(0, 1.0)]);
}

#[test]
fn indices_and_shapes_are_checked() {
    let process = ControlledProcess::from_fn(2, 2, |state, _| [(state, 1.0)]).unwrap();
    let chain = MarkovChain::from_fn(2, |state| [(state, 1.0)]).unwrap();
    let discount = gamma(0.9);
    assert_says(process.reach(2, discount), &["goal", "below 2", "found 2"]);
    assert_says(process.hops_to(7), &["goal", "found 7"]);
    assert_says(process.successor_distances_from(2, discount), &["start", "found 2"]);
    assert_says(chain.successor_distances_to(2, discount), &["goal", "found 2"]);
    assert_says(Policy::deterministic(2, &[0, 2]), &["action in state 1", "below 2", "found 2"]);
    assert_says(Policy::from_dense(2, &[0.5, 0.6]), &["policy, state 0", "1.1"]);
    assert_says(Policy::from_dense(2, &[0.5, 0.5, 1.0]), &["policy", "found 3"]);
    assert_says(Policy::uniform(0, 2), &["states"]);
    assert_says(Policy::uniform(2, 0), &["actions"]);
    assert_says(
        process.under(&Policy::uniform(3, 2).unwrap()),
        &["policy, states", "expected 2", "found 3"],
    );
    assert_says(process.under(&Policy::uniform(2, 3).unwrap()), &["policy, actions", "found 3"]);
    let policy = Policy::uniform(2, 2).unwrap();
    let sample =
        |start| Sampling { start, trajectories: 1, steps: 1, seed: 0 }.sample(&process, &policy);
    assert_says(sample(Start::State(2)), &["start", "below 2"]);
    assert_says(sample(Start::Distribution(vec![1.0])), &["start", "expected 2", "found 1"]);
    assert_says(sample(Start::Distribution(vec![0.5, 0.1])), &["start", "sum to 1"]);
    let reaching = process.reach(0, discount).unwrap();
    assert_says(reaching.greedy_path(&process, 2), &["start", "found 2"]);
}

#[test]
fn layouts_name_line_and_column() {
    let parse = |layout: &str| Grid::parse(layout, &GridRules::default());
    assert_says(parse(""), &["line 1", "found none"]);
    assert_says(parse("...\n..?"), &["line 2, column 3", "'?'"]);
    assert_says(parse("...\n.."), &["line 2", "expected 3 cells", "found 2"]);
    assert_says(parse("\n  ..\n  ...."), &["line 3", "expected 2 cells", "found 4"]);
    assert_says(parse("##\n##"), &["states", "at least 1"]);
    assert_says(parse("a."), &["`a`", "exit `A`"]);
    assert_says(parse(",."), &["wind", "`,`"]);
    let with = |rules| Grid::parse("~.", &rules);
    assert_says(with(GridRules { slip: 1.5, ..GridRules::default() }), &["slip", "[0, 1]", "1.5"]);
    assert_says(with(GridRules { slip: f64::NAN, ..GridRules::default() }), &["slip", "NaN"]);
    let teleport = [('q', 0.5)].into();
    assert_says(with(GridRules { teleport, ..GridRules::default() }), &["teleport.q", "`q`"]);
    let wind = Some(Wind { direction: Move::Stay, probability: 0.1 });
    assert_says(with(GridRules { wind, ..GridRules::default() }), &["wind.direction", "stay"]);
    let wind = Some(Wind { direction: Move::East, probability: 2.0 });
    assert_says(with(GridRules { wind, ..GridRules::default() }), &["wind.probability", "2"]);
}

#[test]
fn files_come_back_as_they_were() {
    let folder = folder("round-trip");
    let chain = MarkovChain::from_dense(
        3,
        &[0.1, 0.9, 0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0, 0.0, 1.0],
    )
    .unwrap();
    save(folder.join("chain.toml"), &chain).unwrap();
    assert_eq!(load::<MarkovChain>(folder.join("chain.toml")).unwrap(), chain);
    let process = ControlledProcess::from_fn(3, 2, |s, a| [((s + a) % 3, 0.7), (s, 0.3)]).unwrap();
    save(folder.join("process.toml"), &process).unwrap();
    assert_eq!(load::<ControlledProcess>(folder.join("process.toml")).unwrap(), process);
    let rules = GridRules {
        slip: 0.1,
        wind: Some(Wind { direction: Move::West, probability: 0.2 }),
        teleport: [('a', 0.9)].into(),
    };
    let grid = Grid::parse("A.#a\n~,>@", &rules).unwrap();
    save(folder.join("grid.toml"), &grid).unwrap();
    assert_eq!(load::<Grid>(folder.join("grid.toml")).unwrap(), grid);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3, "nothing else is left behind");
}

#[test]
fn files_with_mistakes_name_file_and_key() {
    let folder = folder("mistakes");
    let path = folder.join("bad.toml");
    let check_chain = |text: &str, parts: &[&str]| {
        std::fs::write(&path, text).unwrap();
        assert_says(load::<MarkovChain>(&path), &[&["bad.toml"], parts].concat());
    };
    let row = "[[transition]]\nstate = 0\nnext = [0]\nprobability = [1.0]\n";
    check_chain("", &["states"]);
    check_chain("states = 1\n", &["transition"]);
    check_chain(&format!("states = \"one\"\n{row}"), &["states", "one"]);
    check_chain(&format!("states = 1\ncolour = 3\n{row}"), &["unknown field", "colour"]);
    check_chain(&format!("states = 1\n{row}action = 1\n"), &["unknown field", "action"]);
    check_chain(&format!("states = 1\n{row}")[..40], &["bad.toml"]);
    check_chain(&format!("states = 2\n{row}"), &["transition", "expected 2", "found 1"]);
    check_chain(&format!("states = 9000000000000000000\n{row}"), &["transition", "found 1"]);
    check_chain(&format!("states = 2\n{row}{row}"), &["transition of state 0", "found two"]);
    check_chain(
        "states = 1\n[[transition]]\nstate = 4\nnext = []\nprobability = []\n",
        &["state", "below 1", "found 4"],
    );
    check_chain(
        "states = 1\n[[transition]]\nstate = 0\nnext = [0]\nprobability = []\n",
        &["probability", "expected 1", "found 0"],
    );
    check_chain(
        "states = 1\n[[transition]]\nstate = 0\nnext = [0]\nprobability = [nan]\n",
        &["state 0", "NaN"],
    );
    check_chain(
        "states = 1\n[[transition]]\nstate = 0\nnext = [3]\nprobability = [1.0]\n",
        &["next state", "found 3"],
    );

    std::fs::write(&path, "layout = '..'\n[rules]\nslipp = 0.1\n").unwrap();
    assert_says(load::<Grid>(&path), &["bad.toml", "unknown field", "slipp"]);
    std::fs::write(&path, "layout = '.?'\n").unwrap();
    assert_says(load::<Grid>(&path), &["bad.toml", "line 1, column 2", "?"]);
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert_says(load::<Grid>(&path), &["bad.toml", "UTF-8"]);
    assert_says(load::<Grid>(folder.join("missing.toml")), &["missing.toml"]);
    assert_says(save(folder.join("no/such/folder.toml"), &gamma(0.5)), &["folder.toml"]);
}

#[test]
fn pictures_are_written_whole_or_refused() {
    let folder = folder("pictures");
    let grid = Grid::parse("A.#\n.>B\n#@.", &GridRules::default()).unwrap();
    let (a, b) = (grid.marked('A')[0], grid.marked('B')[0]);
    let reaching = grid.process().reach(b, gamma(0.9)).unwrap();
    let path = reaching.greedy_path(grid.process(), a).unwrap().unwrap();
    let picture = HeatMap {
        grid: &grid,
        values: reaching.distances(),
        title: "a title",
        scale: "successor distance (nats)",
        center: b,
        path: &path,
    };
    picture.save(folder.join("map.svg")).unwrap();
    let svg = std::fs::read_to_string(folder.join("map.svg")).unwrap();
    for text in [
        "a title",
        "successor distance (nats)",
        "greedy path",
        "unreachable",
        "wall",
        "column",
        "line",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(svg.trim_end().ends_with("</svg>"));

    picture.save(folder.join("map.png")).unwrap();
    let decoder = png::Decoder::new(std::io::BufReader::new(
        std::fs::File::open(folder.join("map.png")).unwrap(),
    ));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    // The wall at the top right is dark, the margin white; the cell next to the goal is darker than
    // the start's neighbour.
    let side = 56;
    let at = |line: usize, column: usize| {
        let (x, y) = (64 + column * side + 4, 56 + line * side + 4);
        let start = (y * info.width as usize + x) * 3;
        pixels[start..start + 3].iter().map(|&byte| u32::from(byte)).sum::<u32>()
    };
    assert!(at(0, 2) < 100);
    assert_eq!(pixels[..3], [255, 255, 255]);
    assert!(at(1, 1) < at(0, 0), "{} {}", at(1, 1), at(0, 0));

    assert_says(picture.save(folder.join("map.gif")), &["map.gif", "png or svg", "gif"]);
    assert_says(picture.save(folder.join("map")), &["map", "none"]);
    assert_says(HeatMap { values: &[0.0], ..picture }.save("x.png"), &["values", "found 1"]);
    assert_says(HeatMap { values: &[f64::NAN; 7], ..picture }.save("x.png"), &["state 0", "NaN"]);
    assert_says(HeatMap { center: 99, ..picture }.save("x.png"), &["center", "99"]);
    assert_says(HeatMap { path: &[99], ..picture }.save("x.png"), &["path", "99"]);
    // A failed write leaves the file that was there.
    let before = std::fs::read(folder.join("map.svg")).unwrap();
    std::fs::create_dir(folder.join("map.svg.partial")).unwrap();
    assert_says(picture.save(folder.join("map.svg")), &["map.svg"]);
    assert_eq!(std::fs::read(folder.join("map.svg")).unwrap(), before);
}
