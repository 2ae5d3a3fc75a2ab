//! Files written by h5py, NumPy and safetensors (`samples/make_samples.py`) are read as what they
//! hold.

use std::path::PathBuf;

use cm_replay::{Dataset, Error, ReadOptions, read};

const ENDS: [usize; 3] = [1, 13, 40];

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

/// The numbers `make_samples.py` writes.
fn observation(row: usize, column: usize) -> f32 {
    let trajectory = ENDS.iter().position(|&end| row < end).unwrap();
    let start = if trajectory == 0 { 0 } else { ENDS[trajectory - 1] };
    match column {
        0 => 8.0 * trajectory as f32 + 0.25 * (row - start) as f32,
        1 => -(trajectory as f32),
        _ => ((row * 31 + column * 7) % 64) as f32 / 16.0 - 2.0,
    }
}

fn action(row: usize, column: usize) -> f32 {
    (((row * 5 + column * 3) % 17) as f32 - 8.0) / 8.0
}

fn check(data: &Dataset, action_scale: f32) {
    assert_eq!((data.observations().rows(), data.observations().columns()), (40, 29));
    assert_eq!((data.actions().rows(), data.actions().columns()), (40, 8));
    for row in 0..40 {
        for (column, &found) in data.observations().row(row).iter().enumerate() {
            assert_eq!(found, observation(row, column), "observation {row}, {column}");
        }
        for (column, &found) in data.actions().row(row).iter().enumerate() {
            assert_eq!(found, action_scale * action(row, column), "action {row}, {column}");
        }
    }
}

#[test]
fn reads_d4rl_files_in_every_storage() {
    for name in [
        "d4rl_gzip",
        "d4rl_contiguous",
        "d4rl_chunked",
        "d4rl_latest_contiguous",
        "d4rl_latest_gzip",
        "d4rl_latest_shuffle",
        "d4rl_latest_resizable",
        "d4rl_v110_resizable",
        "d4rl_lzf",
    ] {
        let data = read(sample(&format!("{name}.hdf5")), &ReadOptions::default())
            .unwrap_or_else(|error| panic!("{error}"));
        check(&data, 1.0);
        assert_eq!(data.ends(), ENDS, "{name}");
    }
}

#[test]
fn reads_extras_of_a_d4rl_file() {
    let names = ["rewards", "terminals", "infos/goal", "infos/qpos", "infos/qvel"];
    let options =
        ReadOptions { extras: names.map(str::to_owned).to_vec(), ..ReadOptions::default() };
    let data = read(sample("d4rl_gzip.hdf5"), &options).unwrap();
    let widths = [1, 1, 2, 15, 14];
    for (name, width) in names.into_iter().zip(widths) {
        assert_eq!(data.extras()[name].columns(), width, "{name}");
    }
    for row in 0..40 {
        let success = f32::from(u8::from(row % 5 == 4));
        assert_eq!(data.extras()["rewards"].row(row), [success]);
        assert_eq!(data.extras()["terminals"].row(row), [success]);
        assert_eq!(data.extras()["infos/goal"].row(row)[1], observation(row, 1) + 1.0);
        assert_eq!(data.extras()["infos/qpos"].row(row)[14], observation(row, 14));
        assert_eq!(data.extras()["infos/qvel"].row(row)[13], observation(row, 28));
    }
}

/// Between the samples' trajectories x jumps by 8 and y by 1; within them x moves by 0.25.
#[test]
fn a_jump_of_the_position_ends_a_trajectory_where_timeouts_are_missing() {
    let path = sample("d4rl_without_timeouts.hdf5");
    let jump = |limit| ReadOptions { xy_jump: Some(limit), ..ReadOptions::default() };
    assert_eq!(read(&path, &jump(1.0)).unwrap().ends(), ENDS);
    assert_eq!(read(&path, &jump(100.0)).unwrap().ends(), [40]);
    // Beside timeouts the rule only adds ends.
    assert_eq!(read(sample("d4rl_gzip.hdf5"), &jump(0.1)).unwrap().trajectories(), 40);
    assert_eq!(read(sample("d4rl_gzip.hdf5"), &jump(100.0)).unwrap().ends(), ENDS);

    let message = read(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("timeouts") && message.contains("terminals"), "{message}");
    let message = read(&path, &jump(-1.0)).unwrap_err().to_string();
    assert!(message.contains("above 0") && message.contains("-1"), "{message}");
}

#[test]
fn reads_ogbench_files() {
    for name in ["ogbench.npz", "ogbench_stored.npz"] {
        let data = read(sample(name), &ReadOptions::default()).unwrap();
        check(&data, 1.0);
        assert_eq!(data.ends(), ENDS);
        // T + 1 rows for T transitions.
        assert_eq!(data.transitions(), 11 + 26);
    }
    let options = ReadOptions { extras: vec!["qpos".to_owned()], ..ReadOptions::default() };
    let data = read(sample("ogbench.npz"), &options).unwrap();
    assert_eq!(data.extras()["qpos"].row(39)[3], observation(39, 3));
}

#[test]
fn reads_other_types_orders_and_safetensors() {
    let data = read(sample("numpy_types.npz"), &ReadOptions::default()).unwrap();
    check(&data, 8.0);
    assert_eq!(data.ends(), ENDS);
    let data = read(sample("arrays.safetensors"), &ReadOptions::default()).unwrap();
    check(&data, 1.0);
    assert_eq!(data.ends(), ENDS);
}

#[test]
fn names_what_is_missing_and_what_there_is() {
    let options = ReadOptions { extras: vec!["velocity".to_owned()], ..ReadOptions::default() };
    for name in ["ogbench.npz", "d4rl_gzip.hdf5", "arrays.safetensors"] {
        let error = read(sample(name), &options).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(name), "{message}");
        assert!(message.contains("`velocity`") && message.contains("terminals"), "{message}");
    }
    let error = read(sample("make_samples.py"), &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("safetensors, csv or cmdata, found `py`"), "{error}");
    let error = read(sample("nothing.npz"), &ReadOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::File { cause, .. } if matches!(**cause, Error::Io { .. })));
}
