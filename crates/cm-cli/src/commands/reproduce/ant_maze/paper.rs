//! The paper's table.

use cm_envs::ant_maze::Task;
use cm_train::Method;

/// Success in per cent in the paper's table: the mean, and the standard error where it is given.
pub(super) fn paper(task: Task, method: Method) -> Option<(f64, Option<f64>)> {
    let column = match method {
        Method::Cmd1 => 0,
        Method::Cmd2 => 1,
        Method::Qrl => 2,
        Method::Crl => 3,
        Method::Gcbc => 4,
        Method::Iql => 5,
        Method::QLearning | Method::Tmd | Method::Gcivl | Method::Gciql | Method::Hiql => {
            return None;
        }
    };
    let errors = [true, true, true, true, false, false];
    let row: [(f64, f64); 6] = match task {
        Task::Umaze => {
            [(90.3, 4.2), (97.0, 0.4), (76.8, 2.3), (79.8, 1.6), (65.4, 0.0), (87.5, 0.0)]
        }
        Task::UmazeDiverse => {
            [(90.3, 4.6), (90.5, 1.4), (80.1, 1.3), (77.6, 2.8), (60.9, 0.0), (62.2, 0.0)]
        }
        Task::MediumPlay => {
            [(78.0, 4.0), (72.3, 2.6), (76.5, 2.1), (72.6, 2.9), (58.1, 0.0), (71.2, 0.0)]
        }
        Task::MediumDiverse => {
            [(83.0, 3.1), (71.8, 1.0), (73.4, 1.9), (71.5, 1.3), (67.3, 0.0), (70.0, 0.0)]
        }
        Task::LargePlay => {
            [(68.0, 2.1), (59.2, 1.8), (52.9, 2.8), (48.6, 4.4), (32.4, 0.0), (39.6, 0.0)]
        }
        Task::LargeDiverse => {
            [(74.5, 2.3), (63.6, 1.9), (51.5, 3.8), (54.1, 5.5), (36.9, 0.0), (47.5, 0.0)]
        }
    };
    let (mean, error) = row[column];
    Some((mean, errors[column].then_some(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_table_is_whole() {
        for task in Task::ALL {
            for method in Method::ALL {
                let found = paper(task, method);
                let position = Method::ALL.iter().position(|known| *known == method);
                let in_paper = method != Method::QLearning && position < Some(7);
                assert_eq!(found.is_some(), in_paper);
                assert!(found.is_none_or(|(mean, _)| (20.0..100.0).contains(&mean)));
            }
        }
        assert_eq!(paper(Task::LargePlay, Method::Cmd1), Some((68.0, Some(2.1))));
        assert_eq!(paper(Task::MediumDiverse, Method::Iql), Some((70.0, None)));
    }
}
