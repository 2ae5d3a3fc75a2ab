//! Our own form: what is written is what is read, and a failed writer leaves nothing.

use std::path::Path;
use std::sync::Arc;

use cm_replay::store::{StoreWriter, TrajectoryRows};
use cm_replay::{
    Batch, Dataset, Error, Goals, Matrix, Normalization, Prefetcher, ReadOptions, Sampler, Summary,
};
use proptest::prelude::*;

fn numbers(rows: usize, columns: usize, scale: f32) -> Matrix {
    let numbers = (0..rows * columns).map(|x| (x as f32 * scale).sin()).collect();
    Matrix::from_vec(rows, columns, numbers).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn reads_back_what_it_wrote(
        lengths in prop::collection::vec(1_usize..50, 1..20),
        observations in 1_usize..12,
        actions in 0_usize..5,
        extras in prop::collection::btree_map("[a-z/]{1,12}", 0_usize..4, 0..4),
    ) {
        let rows: usize = lengths.iter().sum();
        let ends = lengths.iter().scan(0, |end, length| { *end += length; Some(*end) }).collect();
        let mut data =
            Dataset::new(numbers(rows, observations, 0.1), numbers(rows, actions, 0.7), ends).unwrap();
        for (name, width) in extras {
            data = data.with_extra(name, numbers(rows, width, 1.3)).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cmdata");
        data.save(&path).unwrap();
        let mapped = Dataset::open(&path).unwrap();
        prop_assert!(mapped.observations().is_mapped());
        prop_assert_eq!(&mapped, &data);
        let read = cm_replay::read(&path, &ReadOptions::default()).unwrap();
        prop_assert!(read.observations().is_mapped() && read.actions().is_mapped());
        prop_assert_eq!(&read, &data);
        let loaded = Dataset::load(&path).unwrap();
        prop_assert!(!loaded.observations().is_mapped());
        prop_assert_eq!(&loaded, &data);
        prop_assert_eq!(files(folder.path()), ["a.cmdata"]);
    }
}

/// Large enough for huge pages, padded rows and several parts per batch.
#[test]
fn a_mapped_data_set_gives_the_batches_of_the_one_in_memory() {
    let rows = 200_000;
    let data = Dataset::new(
        numbers(rows, 29, 0.01),
        numbers(rows, 3, 0.02),
        (1..=100).map(|end| end * rows / 100).collect(),
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cmdata");
    data.save(&path).unwrap();
    let mapped = Arc::new(Dataset::open(&path).unwrap());
    let data = Arc::new(data);
    let goals = Goals { random: 0.3, ..Goals::geometric(0.99) };
    let samplers = [&data, &mapped].map(|data| Sampler::new(data.clone(), goals, 9).unwrap());
    let mut batches = [Batch::new(&data, 3000), Batch::new(&data, 3000)];
    for step in 0..5 {
        for (sampler, batch) in samplers.iter().zip(&mut batches) {
            sampler.fill(step, batch).unwrap();
        }
        assert_eq!(batches[0], batches[1]);
    }
    let mut prefetchers =
        [1, 3].map(|workers| Prefetcher::new(&samplers[1], 3000, 2, workers).unwrap());
    for step in 2..12 {
        samplers[0].fill(step, &mut batches[0]).unwrap();
        for prefetcher in &mut prefetchers {
            assert_eq!(prefetcher.next(&mut batches[1]), step);
            assert_eq!(batches[0], batches[1]);
        }
        // Buffers of another size are replaced.
        batches[1] = Batch::default();
    }
}

#[test]
fn an_unfinished_writer_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cmdata");
    let data = Dataset::new(numbers(5, 2, 1.0), numbers(5, 1, 1.0), vec![5]).unwrap();
    data.save(&path).unwrap();

    let mut writer = StoreWriter::create(&path, 2, 1, &[("goal", 2)]).unwrap();
    let row = TrajectoryRows { observations: &[1.0; 6], actions: &[0.0; 3], extras: &[&[2.0; 6]] };
    writer.push(row).unwrap();
    let wrong = [
        TrajectoryRows { observations: &[1.0; 5], ..row },
        TrajectoryRows { observations: &[], actions: &[], extras: &[&[]] },
        TrajectoryRows { actions: &[0.0; 2], ..row },
        TrajectoryRows { extras: &[], ..row },
        TrajectoryRows { extras: &[&[2.0; 5]], ..row },
    ];
    for rows in wrong {
        writer.push(rows).unwrap_err();
    }
    drop(writer);
    assert_eq!(files(folder.path()), ["a.cmdata"]);
    assert_eq!(Dataset::load(&path).unwrap(), data);

    // A refused trajectory leaves no trace in the file either.
    let mut writer = StoreWriter::create(&path, 2, 1, &[("goal", 2)]).unwrap();
    writer.push(row).unwrap();
    writer.push(wrong[2]).unwrap_err();
    writer.push(row).unwrap();
    writer.finish().unwrap();
    let data = Dataset::load(&path).unwrap();
    assert_eq!((data.ends(), data.extras()["goal"].row(5)), (&[3, 6][..], &[2.0, 2.0][..]));

    StoreWriter::create(&path, 2, 1, &[]).unwrap().finish().unwrap_err();
    let error = StoreWriter::create(folder.path().join("no/where.cmdata"), 2, 1, &[]).unwrap_err();
    assert!(error.to_string().contains("where.cmdata"), "{error}");
    assert_eq!(files(folder.path()), ["a.cmdata"]);
}

#[test]
fn a_later_version_is_refused_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cmdata");
    Dataset::new(numbers(5, 2, 1.0), numbers(5, 1, 1.0), vec![5]).unwrap().save(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 2;
    std::fs::write(&path, bytes).unwrap();
    let message = Dataset::open(&path).unwrap_err().to_string();
    assert!(message.contains("version 2") && message.contains("version 1"), "{message}");
}

#[test]
fn arrays_that_do_not_belong_together_are_refused() {
    let new = |rows, ends: &[usize]| {
        Dataset::new(numbers(6, 2, 1.0), numbers(rows, 1, 1.0), ends.to_vec())
    };
    assert!(matches!(new(5, &[6]), Err(Error::Shape { key, .. }) if key == "actions"));
    for ends in [&[][..], &[5], &[7], &[0, 6], &[3, 3, 6], &[4, 2, 6]] {
        assert!(matches!(new(6, ends), Err(Error::Trajectories { .. })), "{ends:?}");
    }
    let data = new(6, &[2, 6]).unwrap();
    assert!(data.with_extra("rewards", numbers(5, 1, 1.0)).is_err());
    assert!(Matrix::from_vec(2, 3, vec![0.0; 5]).is_err());
    assert!(Matrix::filled_by(usize::MAX, 3, |_| Ok(())).is_err());
}

#[test]
fn splits_by_trajectory() {
    let data = Dataset::new(numbers(300, 1, 1.0), numbers(300, 1, 1.0), (1..=300).collect());
    let data = data.unwrap();
    let split = data.split(0.25, 1).unwrap();
    assert_eq!((split.training.len(), split.validation.len()), (225, 75));
    let mut all = [split.training.clone(), split.validation.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (0..300).collect::<Vec<_>>());
    assert_eq!(data.split(0.25, 1).unwrap(), split);
    assert_ne!(data.split(0.25, 2).unwrap(), split);
    // Each trajectory is set aside about a quarter of the time: 400 * 0.25 = 100, standard
    // deviation 8.7.
    let mut counts = [0; 300];
    for seed in 0..400 {
        data.split(0.25, seed).unwrap().validation.iter().for_each(|&aside| counts[aside] += 1);
    }
    assert!(counts.iter().all(|count| (60..140).contains(count)), "{counts:?}");
    assert_eq!(data.split(0.9999, 1).unwrap().training.len(), 1);
    assert!(data.split(1.0, 1).is_err() && data.split(f64::NAN, 1).is_err());
}

#[test]
fn summary_and_normalization_are_the_textbook_numbers() {
    // Far from zero, where a sum of squares in f32 would lose the spread.
    let column: Vec<f32> = (0..100_000).map(|x| 1e4 + (x % 10) as f32).collect();
    let matrix = Matrix::from_vec(100_000, 1, column).unwrap();
    let data = Dataset::new(matrix.clone(), matrix.clone(), vec![10, 30, 100_000]).unwrap();
    let summary = Summary::of(&data);
    assert_eq!((summary.trajectories, summary.transitions), (3, 99_997));
    assert_eq!((summary.shortest, summary.median, summary.longest), (10, 20, 99_970));
    let column = summary.arrays[0].columns[0];
    assert_eq!((column.min, column.max, column.mean), (1e4, 10_009.0, 10_004.5));
    assert!((column.deviation - 8.25_f32.sqrt()).abs() < 1e-6);
    assert!(summary.to_string().contains("3 trajectories, 100000 steps, 99997 transitions"));

    let Normalization { mean, deviation } = Normalization::of(&matrix);
    assert_eq!((mean[0], deviation[0]), (column.mean, column.deviation));
}
