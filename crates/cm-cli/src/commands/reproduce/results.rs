//! What came of an experiment's runs: evaluations of every method and seed, their means and curves.

use std::fmt;
use std::path::{Path, PathBuf};

use cm_train::{EvaluationRow, Job, Method, RunFolder, read_evaluations};

use crate::figures::{Chart, Curve};

/// Who went where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Walk {
    /// The method's policy straight to its goals.
    Straight,
    /// The same on a road map.
    Planned,
    /// A policy for goals nearby on the same map.
    Nearby,
}

impl Walk {
    pub(in crate::commands) const ALL: [Self; 3] = [Self::Straight, Self::Planned, Self::Nearby];

    /// Where a run has its evaluations.
    pub(in crate::commands) fn file(self, run: &RunFolder) -> PathBuf {
        match self {
            Self::Straight => run.evaluations_file(),
            Self::Planned => run.planned_file(),
            Self::Nearby => run.nearby_file(),
        }
    }
}

impl fmt::Display for Walk {
    /// What the column `planned` of a CSV file has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Straight => "false",
            Self::Planned => "true",
            Self::Nearby => "nearby",
        })
    }
}

/// A method's evaluations, one list for each seed.
pub(in crate::commands) struct Results {
    pub(in crate::commands) method: Method,
    pub(in crate::commands) walk: Walk,
    pub(in crate::commands) seeds: Vec<Vec<EvaluationRow>>,
}

/// Mean and standard error over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::commands) struct Spread {
    pub(in crate::commands) mean: f64,
    pub(in crate::commands) error: f64,
}

/// The evaluations that the folders of `jobs` hold, methods in the order of their first job, each
/// without and, where there is one, with a road map; then a policy for goals nearby on it.
pub(in crate::commands) fn results<'a>(
    jobs: impl Iterator<Item = &'a Job>,
) -> anyhow::Result<Vec<Results>> {
    let mut results: Vec<Results> = Vec::new();
    for job in jobs {
        let folder = RunFolder::new(&job.folder);
        let method = job.settings.method.method();
        for walk in Walk::ALL {
            let file = walk.file(&folder);
            if !file.exists() {
                continue;
            }
            let rows = read_evaluations(&file)?;
            let same = |result: &Results| result.is((method, walk));
            match results.iter().position(same) {
                Some(place) => results[place].seeds.push(rows),
                None => {
                    // Beside the same method's.
                    let last = results.iter().rposition(|result| result.method == method);
                    let place = last.map_or(results.len(), |last| last + 1);
                    results.insert(place, Results { method, walk, seeds: vec![rows] });
                }
            }
        }
    }
    Ok(results)
}

/// The columns of a table: each method, and behind it what walked its road maps if anything did.
pub(in crate::commands) fn table_columns<'a>(
    methods: &[Method],
    results: impl Iterator<Item = &'a Results> + Clone,
) -> Vec<(Method, Walk)> {
    let all = methods.iter().flat_map(|&method| Walk::ALL.map(|walk| (method, walk)));
    let is_there = |column| results.clone().any(|result| result.is(column));
    all.filter(|&column| column.1 == Walk::Straight || is_there(column)).collect()
}

/// What a column or a curve is called.
pub(in crate::commands) fn title((method, walk): (Method, Walk)) -> String {
    let walk = match walk {
        Walk::Straight => "",
        Walk::Planned => ", planned",
        Walk::Nearby => ", planned for GCBC",
    };
    format!("{}{walk}", method.title())
}

impl Results {
    /// What it is called in tables and figures.
    pub(in crate::commands) fn title(&self) -> String {
        title((self.method, self.walk))
    }

    /// Whether it is this column of a table.
    pub(in crate::commands) fn is(&self, column: (Method, Walk)) -> bool {
        (self.method, self.walk) == column
    }

    /// The mean of the evaluations from step `from` on.
    pub(in crate::commands) fn late(&self, from: u64) -> Option<Spread> {
        self.over_seeds(|rows| {
            let late = rows.iter().filter(|row| row.step >= from).map(|row| row.success);
            Some(spread(&late.collect::<Vec<_>>())?.mean)
        })
    }

    /// The best evaluation.
    pub(in crate::commands) fn best(&self) -> Option<Spread> {
        self.over_seeds(|rows| rows.iter().map(|row| row.success).reduce(f64::max))
    }

    /// The last evaluation.
    pub(in crate::commands) fn last(&self) -> Option<Spread> {
        self.over_seeds(|rows| rows.last().map(|row| row.success))
    }

    /// The last step that was evaluated.
    pub(in crate::commands) fn steps(&self) -> u64 {
        self.seeds.iter().filter_map(|rows| rows.last()).map(|row| row.step).max().unwrap_or(0)
    }

    /// The last step that was evaluated of every seed.
    pub(in crate::commands) fn reached(&self) -> u64 {
        let last = self.seeds.iter().map(|rows| rows.last().map_or(0, |row| row.step));
        last.min().unwrap_or(0)
    }

    /// One number for each seed, and their spread.
    fn over_seeds(&self, number: impl Fn(&[EvaluationRow]) -> Option<f64>) -> Option<Spread> {
        spread(&self.seeds.iter().filter_map(|rows| number(rows)).collect::<Vec<_>>())
    }

    /// Success over training: step, mean and standard error.
    pub(in crate::commands) fn curve(&self) -> Curve {
        let points = self.seeds.iter().flatten().map(|row| [row.step as f64, row.success]);
        mean_curve(self.title(), points.collect())
    }
}

/// The mean at every step of the points of all seeds, and its standard error.
pub(in crate::commands) fn mean_curve(name: String, mut points: Vec<[f64; 2]>) -> Curve {
    points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let means = points.chunk_by(|a, b| a[0] == b[0]).filter_map(|at| {
        let values: Vec<_> = at.iter().map(|point| point[1]).collect();
        spread(&values).map(|Spread { mean, error }| [at[0][0], mean, error])
    });
    Curve { name, points: means.collect() }
}

/// Draws success over training, a curve with its band for each method.
pub(in crate::commands) fn draw_success(
    title: &str,
    results: &[Results],
    file: &Path,
) -> anyhow::Result<()> {
    let curves: Vec<Curve> = results.iter().map(Results::curve).collect();
    let chart = Chart {
        title,
        x_label: "training steps",
        y_label: "share of goals reached",
        y_range: Some((0.0, 1.0)),
        curves: &curves,
    };
    Ok(chart.save(file)?)
}

/// Of numbers, one for each seed; none of none.
pub(in crate::commands) fn spread(values: &[f64]) -> Option<Spread> {
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let variance =
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    Some(Spread { mean, error: (variance / count).sqrt() })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Evaluations every thousand steps.
    pub(in super::super) fn rows(values: &[f64]) -> Vec<EvaluationRow> {
        let row = |(index, &success): (usize, &f64)| EvaluationRow {
            step: 1000 * index as u64,
            success,
            mean_steps: 1.0,
            tasks: Vec::new(),
        };
        values.iter().enumerate().map(row).collect()
    }

    #[test]
    fn evaluations_are_averaged_first_and_seeds_then() {
        let seeds = vec![rows(&[0.0, 0.4, 0.6]), rows(&[0.0, 0.8, 0.8])];
        let results = Results { method: Method::Cmd1, walk: Walk::Straight, seeds };
        let close = |found: Option<Spread>, mean: f64, error: f64| {
            let found = found.unwrap();
            assert!((found.mean - mean).abs() < 1e-12 && (found.error - error).abs() < 1e-12);
        };
        close(results.late(1000), 0.65, 0.15);
        close(results.best(), 0.7, 0.1);
        close(results.last(), 0.7, 0.1);
        assert_eq!((results.steps(), results.late(3000)), (2000, None));
        let points = results.curve().points;
        assert_eq!(points.len(), 3);
        assert!((points[1][1] - 0.6).abs() < 1e-12 && (points[1][2] - 0.2).abs() < 1e-12);
    }
}
