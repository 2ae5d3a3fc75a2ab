//! What has been published.

use cm_envs::ogbench::OgTask;
use cm_train::Method;

/// Success in per cent: the mean and what stands behind the sign of plus and minus. That is the
/// standard deviation over 8 seeds in OGBench's table (arXiv:2410.20092), and the standard error
/// over 6 seeds in the TMD paper's (TMD and CMD, arXiv:2509.20478), whose CMD is [`Method::Cmd1`]
/// here.
pub(super) fn published(task: OgTask, method: Method) -> Option<(f64, f64)> {
    let name = task.name();
    let name = name.trim_end_matches("-v0");
    let of = |column: usize| {
        let row = OGBENCH.iter().find(|(of, _)| *of == name)?.1;
        Some((f64::from(row[column].0), f64::from(row[column].1)))
    };
    let tmd = |column: usize| TMD.iter().find(|(of, _)| *of == name).map(|(_, row)| row[column]);
    match method {
        Method::Gcbc => of(0),
        Method::Gcivl => of(1),
        Method::Gciql => of(2),
        Method::Qrl => of(3),
        Method::Crl => of(4),
        Method::Hiql => of(5),
        Method::Tmd => tmd(0),
        Method::Cmd1 => tmd(1),
        _ => None,
    }
}

/// GCBC, GCIVL, GCIQL, QRL, CRL, HIQL.
#[rustfmt::skip]
const OGBENCH: [(&str, [(u8, u8); 6]); 19] = [
    ("pointmaze-medium-navigate", [(9, 6), (63, 6), (53, 8), (82, 5), (29, 7), (79, 5)]),
    ("pointmaze-large-navigate", [(29, 6), (45, 5), (34, 3), (86, 9), (39, 7), (58, 5)]),
    ("pointmaze-giant-navigate", [(1, 2), (0, 0), (0, 0), (68, 7), (27, 10), (46, 9)]),
    ("pointmaze-teleport-navigate", [(25, 3), (45, 3), (24, 7), (4, 4), (24, 6), (18, 4)]),
    ("pointmaze-medium-stitch", [(23, 18), (70, 14), (21, 9), (80, 12), (0, 1), (74, 6)]),
    ("pointmaze-large-stitch", [(7, 5), (12, 6), (31, 2), (84, 15), (0, 0), (13, 6)]),
    ("pointmaze-giant-stitch", [(0, 0), (0, 0), (0, 0), (50, 8), (0, 0), (0, 0)]),
    ("pointmaze-teleport-stitch", [(31, 9), (44, 2), (25, 3), (9, 5), (4, 3), (34, 4)]),
    ("antmaze-medium-navigate", [(29, 4), (72, 8), (71, 4), (88, 3), (95, 1), (96, 1)]),
    ("antmaze-large-navigate", [(24, 2), (16, 5), (34, 4), (75, 6), (83, 4), (91, 2)]),
    ("antmaze-giant-navigate", [(0, 0), (0, 0), (0, 0), (14, 3), (16, 3), (65, 5)]),
    ("antmaze-teleport-navigate", [(26, 3), (39, 3), (35, 5), (35, 5), (53, 2), (42, 3)]),
    ("antmaze-medium-stitch", [(45, 11), (44, 6), (29, 6), (59, 7), (53, 6), (94, 1)]),
    ("antmaze-large-stitch", [(3, 3), (18, 2), (7, 2), (18, 2), (11, 2), (67, 5)]),
    ("antmaze-giant-stitch", [(0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (2, 2)]),
    ("antmaze-teleport-stitch", [(31, 6), (39, 3), (17, 2), (24, 5), (31, 4), (36, 2)]),
    ("antmaze-medium-explore", [(2, 1), (19, 3), (13, 2), (1, 1), (3, 2), (37, 10)]),
    ("antmaze-large-explore", [(0, 0), (10, 3), (0, 0), (0, 0), (0, 0), (4, 5)]),
    ("antmaze-teleport-explore", [(2, 1), (32, 2), (7, 3), (2, 2), (20, 2), (34, 15)]),
];

/// TMD, CMD.
const TMD: [(&str, [(f64, f64); 2]); 6] = [
    ("pointmaze-teleport-stitch", [(29.3, 2.2), (15.7, 2.9)]),
    ("antmaze-medium-navigate", [(93.6, 1.0), (92.4, 0.9)]),
    ("antmaze-large-navigate", [(81.5, 1.7), (84.1, 2.1)]),
    ("antmaze-teleport-explore", [(49.6, 1.5), (0.2, 0.1)]),
    ("antmaze-large-stitch", [(37.3, 2.7), (29.0, 2.3)]),
    ("antmaze-giant-stitch", [(2.7, 0.6), (2.0, 0.5)]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_row() {
        for task in OgTask::all() {
            let found = published(task, Method::Qrl);
            assert!(found.is_some_and(|(mean, _)| mean <= 100.0), "{task}");
        }
        let found = |name: &str, method| published(name.parse().unwrap(), method);
        assert_eq!(found("pointmaze-medium-navigate-v0", Method::Gcbc), Some((9.0, 6.0)));
        assert_eq!(found("antmaze-teleport-explore-v0", Method::Hiql), Some((34.0, 15.0)));
        assert_eq!(found("antmaze-large-stitch-v0", Method::Tmd), Some((37.3, 2.7)));
        assert_eq!(found("pointmaze-medium-navigate-v0", Method::Tmd), None);
        assert_eq!(found("antmaze-large-stitch-v0", Method::QLearning), None);
    }
}
