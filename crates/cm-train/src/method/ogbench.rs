//! OGBench's settings of every method, by data set: one table.

use cm_envs::ogbench::{Agent, Behaviour, Maze, OgTask};
use cm_replay::{End, Goals, MixedGoals};

use super::{Method, MethodSettings};
use crate::{EvaluationSettings, HeldOut, ReadOut, RunSettings, TaskSettings};

/// What differs between data sets: how much the data's actions weigh (DDPG with behaviour cloning),
/// or how sharply better ones are preferred (advantage-weighted regression).
struct Row {
    gcivl: f32,
    gciql: f32,
    qrl: f32,
    /// Also of CMD and TMD: the TMD paper says so of TMD.
    crl: f32,
    /// Of both levels.
    hiql: f32,
    /// How far ahead HIQL's subgoals are.
    subgoal_steps: u64,
}

/// | data | GCIVL | GCIQL | QRL | CRL | HIQL | subgoals |
/// |---|---|---|---|---|---|---|
/// | point | 10 | 0.003 | 0.0003 | 0.03 | 3 | 25 |
/// | ant, navigate and stitch | 10 | 0.3 | 0.003 | 0.1 | 3 | 25 |
/// | ant, explore | 10 | 0.01 | 0.001 | 0.003 | 10 | 25 |
#[rustfmt::skip]
fn row(task: OgTask) -> Row {
    match (task.agent, task.behaviour) {
        (Agent::Point, _) => {
            Row { gcivl: 10.0, gciql: 0.003, qrl: 0.0003, crl: 0.03, hiql: 3.0, subgoal_steps: 25 }
        }
        (Agent::Ant, Behaviour::Navigate | Behaviour::Stitch) => {
            Row { gcivl: 10.0, gciql: 0.3, qrl: 0.003, crl: 0.1, hiql: 3.0, subgoal_steps: 25 }
        }
        (Agent::Ant, Behaviour::Explore) => {
            Row { gcivl: 10.0, gciql: 0.01, qrl: 0.001, crl: 0.003, hiql: 10.0, subgoal_steps: 25 }
        }
    }
}

/// Discount of values and of geometric goals.
fn discount(task: OgTask) -> f32 {
    if task.maze == Maze::Giant { 0.995 } else { 0.99 }
}

impl MethodSettings {
    /// OGBench's settings for a data set; TMD as released. Methods that OGBench does not have (CMD
    /// in two steps, Q-learning, IQL with its own networks) are as for D4RL's AntMaze, with
    /// OGBench's widths.
    ///
    /// ```
    /// use cm_train::{Method, MethodSettings};
    ///
    /// let task = "antmaze-giant-stitch-v0".parse()?;
    /// let MethodSettings::Gciql(gciql) = MethodSettings::ogbench(Method::Gciql, task) else {
    ///     unreachable!()
    /// };
    /// assert_eq!(gciql.value.discount, 0.995);
    /// # Ok::<(), cm_envs::Error>(())
    /// ```
    pub fn ogbench(method: Method, task: OgTask) -> Self {
        let (row, discount) = (row(task), discount(task));
        let name = if method == Method::Tmd { "released" } else { "ogbench" };
        let Ok(mut settings) = Self::preset(method, name) else {
            return Self::ant_maze(method, &[512; 3]);
        };
        match &mut settings {
            Self::Gcivl(s) => {
                s.value.discount = discount;
                s.actor.extraction = s.actor.extraction.with_weight(row.gcivl);
            }
            Self::Gciql(s) => {
                s.value.discount = discount;
                s.actor.extraction = s.actor.extraction.with_weight(row.gciql);
            }
            Self::Hiql(s) => {
                s.value.discount = discount;
                (s.low_sharpness, s.high_sharpness) = (row.hiql, row.hiql);
            }
            Self::Qrl(s) => s.actor.extraction = s.actor.extraction.with_weight(row.qrl),
            Self::Crl(s) => s.actor.extraction = s.actor.extraction.with_weight(row.crl),
            Self::Cmd1(s) => s.actor.extraction = s.actor.extraction.with_weight(row.crl),
            Self::Tmd(s) => {
                s.discount = discount;
                s.actor.extraction = s.actor.extraction.with_weight(row.crl);
            }
            Self::Gcbc(_) | Self::Cmd2(_) | Self::QLearning(_) | Self::Iql(_) => {}
        }
        settings
    }
}

impl Method {
    /// How OGBench draws goals for it from a data set.
    ///
    /// | | values: own row / trajectory / anywhere | policies: trajectory / anywhere |
    /// |---|---|---|
    /// | GCIVL, GCIQL, HIQL | 0.2 / 0.5 geometric / 0.3 | by the data |
    /// | QRL | 0 / 0 / 1 | by the data |
    /// | GCBC | (unused) | 1 / 0 |
    /// | others | 0 / 1 geometric / 0 | by the data |
    ///
    /// By the data: 1 / 0 for `navigate`, half of each for `stitch`, 0 / 1 for `explore`; uniform in
    /// the trajectory.
    pub fn ogbench_goals(self, task: OgTask) -> Goals {
        let random = match task.behaviour {
            _ if self == Self::Gcbc => 0.0,
            Behaviour::Navigate => 0.0,
            Behaviour::Stitch => 0.5,
            Behaviour::Explore => 1.0,
        };
        let actor = MixedGoals { current: 0.0, uniform_future: 1.0 - random, random };
        // As the decimal number that it is, not the nearest f32 made longer.
        let gamma = if task.maze == Maze::Giant { 0.995 } else { 0.99 };
        let goals = Goals { end: End::BeforeLast, actor: Some(actor), ..Goals::geometric(gamma) };
        match self {
            Self::Gcivl | Self::Gciql | Self::Iql => Goals { current: 0.2, random: 0.3, ..goals },
            Self::Hiql => {
                let subgoal_steps = row(task).subgoal_steps;
                Goals { current: 0.2, random: 0.3, subgoal_steps, ..goals }
            }
            Self::Qrl => Goals { random: 1.0, ..goals },
            Self::Cmd1 | Self::Cmd2 | Self::Crl | Self::QLearning | Self::Gcbc | Self::Tmd => goals,
        }
    }

    /// Rows of a batch in OGBench, and in the TMD release.
    const fn ogbench_batch(self) -> usize {
        match self {
            Self::Tmd => 512,
            _ => 1024,
        }
    }
}

impl RunSettings {
    /// OGBench's protocol: 1,000,000 steps, an evaluation of five tasks times 50 episodes every
    /// 100,000. `environment` is the task as it is opened.
    pub fn ogbench(method: Method, task: OgTask, environment: TaskSettings) -> Self {
        Self {
            seed: 0,
            steps: 1_000_000,
            batch: method.ogbench_batch(),
            observation_noise: 0.0,
            stay_at_goal: false,
            log_every: 5_000,
            evaluate_every: 100_000,
            checkpoint_every: 100_000,
            read_out: if method == Method::Tmd { ReadOut::States } else { ReadOut::NoAction },
            held_out: HeldOut::default(),
            goals: method.ogbench_goals(task),
            evaluation: EvaluationSettings { episodes: 250, seed: 0, untrained: false },
            plan: None,
            task: environment,
            method: MethodSettings::ogbench(method, task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str) -> OgTask {
        name.parse().unwrap()
    }

    #[test]
    fn every_method_has_valid_settings_for_every_data_set() {
        for task in OgTask::all() {
            for method in Method::ALL {
                let settings = MethodSettings::ogbench(method, task);
                settings.check().unwrap();
                assert_eq!(settings.method(), method);
                let goals = method.ogbench_goals(task);
                assert_eq!(goals.subgoal_steps > 0, method == Method::Hiql);
            }
        }
    }

    #[test]
    fn numbers_are_those_of_the_table() {
        let crl = |name| match MethodSettings::ogbench(Method::Crl, task(name)) {
            MethodSettings::Crl(crl) => crl.actor.extraction,
            _ => unreachable!(),
        };
        let scaled = |alpha| cm_policy::Extraction::ScaledDistance { alpha };
        assert_eq!(crl("pointmaze-medium-navigate-v0"), scaled(0.03));
        assert_eq!(crl("antmaze-medium-stitch-v0"), scaled(0.1));
        assert_eq!(crl("antmaze-medium-explore-v0"), scaled(0.003));
        let MethodSettings::Hiql(hiql) =
            MethodSettings::ogbench(Method::Hiql, task("antmaze-large-explore-v0"))
        else {
            unreachable!()
        };
        assert_eq!((hiql.low_sharpness, hiql.high_sharpness), (10.0, 10.0));
        let goals = Method::Qrl.ogbench_goals(task("antmaze-giant-stitch-v0"));
        assert_eq!((goals.gamma, goals.random), (0.995, 1.0));
        let actor = goals.actor.unwrap();
        assert_eq!((actor.uniform_future, actor.random), (0.5, 0.5));
        let cloned = Method::Gcbc.ogbench_goals(task("antmaze-medium-explore-v0"));
        assert_eq!(cloned.actor.unwrap().random, 0.0);
    }
}
