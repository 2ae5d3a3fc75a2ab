//! Paths along a road map are the shortest chains of links.

use std::sync::atomic::AtomicBool;

use cm_train::{Device, Error, Links, Method, Model, RoadMap, RunFolder, RunSettings, train};

/// A model after a few steps in a small world, and places of that world.
fn model(method: Method) -> (Model, Vec<f32>) {
    let settings = RunSettings { batch: 256, ..RunSettings::tiny_plane(method, 0) };
    let folder = tempfile::tempdir().unwrap();
    let folder = RunFolder::new(folder.path().join("run"));
    let task = settings.task.open().unwrap();
    train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {}).unwrap();
    let places = task.world().unwrap().places().unwrap()[..120].concat();
    (Model::load(&folder, false).unwrap(), places)
}

fn between(a: &[f32], b: &[f32]) -> f32 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

#[test]
fn what_remains_is_the_length_of_the_shortest_chain() {
    let (model, places) = model(Method::Cmd1);
    let count = places.len() / 2;
    let place = |index: usize| &places[2 * index..][..2];
    let all: Vec<f32> =
        (0..count).flat_map(|from| model.distances_from(place(from), &places).unwrap()).collect();
    // The median, so that one pair in two within the radius is linked; between two of them, so that
    // rounding decides nothing.
    let mut sorted = all.clone();
    sorted.sort_by(f32::total_cmp);
    let middle = sorted.len() / 2;
    let links = Links { radius: 12.0, longest: 0.5 * (sorted[middle] + sorted[middle + 1]) };

    // Floyd and Warshall.
    let mut shortest = vec![f32::INFINITY; count * count];
    for (index, &distance) in all.iter().enumerate() {
        let (from, to) = (index / count, index % count);
        if from == to {
            shortest[index] = 0.0;
        } else if between(place(from), place(to)) <= links.radius && distance <= links.longest {
            shortest[index] = distance;
        }
    }
    for via in 0..count {
        for from in 0..count {
            for to in 0..count {
                let around = shortest[from * count + via] + shortest[via * count + to];
                let known = &mut shortest[from * count + to];
                *known = known.min(around);
            }
        }
    }

    let map = RoadMap::new(&model, &places, links).unwrap();
    let mut arrived = 0;
    for goal in (0..count).step_by(7) {
        let paths = map.paths(&model, &places, place(goal)).unwrap();
        for (start, path) in paths.iter().enumerate() {
            let wanted = shortest[start * count + goal];
            assert_eq!(path.arrived, wanted.is_finite());
            if !path.arrived {
                assert_eq!(path.states, [place(start)]);
                continue;
            }
            arrived += 1;
            assert!((path.distances[0] - wanted).abs() <= 1e-4 * wanted.max(1e-3));
            assert_eq!(path.states.last().unwrap(), place(goal));
            assert!(path.states.windows(2).all(|pair| pair[0] != pair[1]));
            for (pair, remaining) in path.states.windows(2).zip(path.distances.windows(2)) {
                assert!(between(&pair[0], &pair[1]) <= links.radius);
                let link = model.distances(&pair[0], &pair[1]).unwrap()[0];
                assert!(link <= links.longest);
                assert!((remaining[0] - remaining[1] - link).abs() <= 1e-4 * wanted.max(1e-3));
            }
        }
    }
    assert!(arrived > count, "most chains would be trivial: {arrived}");
}

#[test]
fn refuses_other_widths() {
    let (model, places) = model(Method::Cmd1);
    let links = Links { radius: 3.0, longest: 2.0 };
    for wrong in [&places[..3], &[]] {
        assert!(matches!(RoadMap::new(&model, wrong, links), Err(Error::Width { .. })));
    }
    let map = RoadMap::new(&model, &places, links).unwrap();
    let (state, none): (&[f32], &[f32]) = (&[1.0, 2.0], &[]);
    for (start, goal) in
        [(state, none), (none, state), (state, &places[..4]), (&places[..3], state)]
    {
        assert!(
            matches!(map.paths(&model, start, goal), Err(Error::Width { .. })),
            "{start:?} {goal:?}"
        );
    }
}

#[test]
fn refuses_what_cannot_be_linked() {
    let (model, places) = self::model(Method::Gcbc);
    let links = Links { radius: 3.0, longest: 2.0 };
    let refused = |links| match RoadMap::new(&model, &places, links) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("accepted"),
    };
    assert_eq!(refused(links), "GCBC learns no distance between states");
    assert!(refused(Links { radius: 0.0, ..links }).contains("`radius`"));
    assert!(refused(Links { longest: f32::NAN, ..links }).contains("`link`"));
}
