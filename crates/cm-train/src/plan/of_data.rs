//! A road map of the data that a model was trained on.

use cm_nn::Backend;

use super::cover::{Cover, cover, typical};
use super::file::Origin;
use super::graph::together;
use super::links::Passages;
use super::luck::thrown;
use super::measure::{Measure, Points, gather};
use super::road_map::Rule;
use super::sample::{Sample, Source};
use super::trust::Held;
use super::{PlanSettings, RoadMap};
use crate::{Error, Model, Result, Task};

/// The policy is sent ahead at least so many times what one step covers: the data may go nowhere for
/// long. Not so where luck throws trajectories about: straight ahead may be a door.
const FULL_STEPS: f32 = 15.0;
/// A link should be so many times longer than how far rows are from their nodes.
const LINKS_TO_COVER: f32 = 3.0;
/// The share of rows whose distance from their nodes counts; the others are odd ones out.
const COVERED: f64 = 0.95;
/// Nine of ten held-out pairs that are as far apart as the longest link took no more than so many
/// times the steps that the policy is sent ahead.
const SURELY: f32 = 2.0;
/// A map on which fewer rows are of nodes with ways to each other is in pieces, and is made anew of
/// so many times the rows.
const JOINED: f64 = 0.97;
const MORE: usize = 4;
/// Rows that can be told apart by a number that is exact.
const MOST_ROWS: usize = (1 << 24) - 1;
/// Data that the nodes do not cover within so many times what is wanted is covered by typical rows.
const COVERABLE: f32 = 2.0;

impl RoadMap {
    /// Chooses states of the data that cover it evenly in the learned metric, and links them where
    /// that is short and the data does not contradict.
    ///
    /// * Rows: whole trajectories; if then ways lead between too few nodes, more rows, in short pieces
    ///   of more trajectories.
    /// * Nodes: farthest-point sampling among rows of the data, by the larger of the distances
    ///   there and back; typical rows if the farthest ones do not cover the data.
    /// * How short: what trajectories cover in a number of steps ([`PlanSettings::steps`]), at least
    ///   fifteen times what they cover in one, says how far ahead the policy is sent; what they cover
    ///   in half as many, how long links are, if nine of ten pairs so far apart took no more than
    ///   twice the steps. These trajectories are held out: no node and no link
    ///   is of them. The policy is sent no farther than any of them went, and not where they took
    ///   twice the steps that they should ([`trust`](Self::trust)); between typical rows only what
    ///   they cover in those steps, by the distance from where it stands.
    /// * Taken: nodes that a trajectory joined in those steps are linked, if held-out ones bear out
    ///   such a distance, unless two shorter links are hardly longer together. Steps whose outcome
    ///   was luck end a trajectory.
    /// * Contradicted: any other link from a node that trajectories passed at least as often as it
    ///   has links, and from where none of them came to the other node in those steps.
    /// * Longer than the learned distance says: links against the way that the data goes, and to
    ///   nodes from which luck threw trajectories elsewhere.
    ///
    /// On the CPU; [`Device::road_map`](crate::Device::road_map) makes it on any device.
    pub fn of_data(model: &Model, task: &Task, settings: &PlanSettings) -> Result<Self> {
        Self::by(&Measure::new(model)?, task, settings)
    }

    /// The same by a measure of any backend.
    pub(crate) fn by<B: Backend>(
        measure: &Measure<'_, B>,
        task: &Task,
        settings: &PlanSettings,
    ) -> Result<Self> {
        settings.check()?;
        let model = measure.model;
        let steps = settings.steps_under(model.settings().goals.gamma);
        let held = Held::new(measure, &task.data, settings)?;
        let (data, among) = (&task.data, &held.split.training);
        let source = Source::new((model, settings.seed), data, among, (settings.rows, steps));
        let moves = (0..data.trajectories()).any(|one| data.trajectory(one).len() > 1);
        if source.rows() < 2 || !moves {
            return Err(Error::Setting {
                setting: "plan".to_owned(),
                expected: "data whose trajectories have several rows",
                found: format!("{} rows", data.steps()),
            });
        }
        let rows = settings.rows;
        let mut draft = Draft::of(measure, &held, source.draw(rows, false), settings, false)?;
        // Ways lead only where enough trajectories meet.
        if draft.joined < JOINED && rows < source.rows() {
            let more = source.draw((MORE * rows).min(MOST_ROWS), true);
            let noisy = draft.map.rule.noisy;
            // With more typical rows fewer of them are ends of the road.
            let nodes = if noisy { 2 * settings.nodes } else { settings.nodes };
            let settings = PlanSettings { nodes, ..*settings };
            draft = Draft::of(measure, &held, more, &settings, noisy)?;
        }
        draft.map.origin = Some(Origin::of(model, task, settings)?);
        Ok(draft.map)
    }
}

/// A map of some rows.
struct Draft {
    map: RoadMap,
    /// The share of rows whose nodes have ways to each other.
    joined: f64,
}

impl Draft {
    /// `noisy`: whether nodes are known not to cover the data.
    fn of<B: Backend>(
        measure: &Measure<'_, B>,
        held: &Held<'_, B>,
        sample: Sample,
        settings: &PlanSettings,
        noisy: bool,
    ) -> Result<Self> {
        let model = measure.model;
        let width = model.dimensions().state();
        let steps = settings.steps_under(model.settings().goals.gamma);
        let points = measure.points(&sample.states)?;
        let some = |rows: &[usize]| gather(&points, rows.iter().copied());
        let lag = steps.div_ceil(sample.stride).max(1);
        let mut trust = held.trust()?;
        let wanted = match settings.link {
            Some(link) => link,
            None => {
                let covered = held.covered((lag / 2).max(1) * sample.stride)?;
                trust.within(covered, SURELY * steps as f32)
            }
        };
        let (found, noisy) =
            choose(measure, &points, &some, settings, (wanted / LINKS_TO_COVER, noisy))?;
        let away = quantile(found.away.clone(), COVERED);
        let link = match settings.link.is_some() || noisy {
            true => wanted,
            false => wanted.max(LINKS_TO_COVER * away),
        };
        let thrown = thrown(&sample.scaled, width, &sample.ends);
        let covered = held.covered(lag * sample.stride)?;
        let far = match thrown.is_empty() {
            true if noisy => {
                // Any step changes a posture; only what more of them add is on the way.
                let (one, five) = (held.covered(1)?, held.covered(5)?);
                one + (FULL_STEPS - 1.0) * (five - one).max(0.0) / 4.0
            }
            true => FULL_STEPS * held.covered(1)?,
            false => 0.0,
        };
        trust.limit(link, covered.max(far).max(link));
        // Links that trajectories took may be so long. Between typical rows that is more than the
        // policy is sent ahead: what many links are off by adds up, what one is off by does not.
        let mut taken = trust.reach;
        if let Some(reach) = settings.reach {
            (trust.wanted, trust.reach) = (reach, reach);
            taken = if noisy { taken } else { reach };
        } else if noisy {
            trust.reach = covered.max(link).min(taken);
            trust.wanted = trust.reach;
        }
        let reach = trust.reach;
        let rule = Rule { link, reach, steps: steps as u32, radius: None, noisy };
        let nodes = some(&found.nodes)?;
        let passages = Passages {
            found: &found,
            states: &sample.scaled,
            width,
            ends: &sample.ends,
            thrown: &thrown,
            lag,
        };
        let links = passages.links(&measure.pairs(&nodes, &nodes)?, [link, taken]);
        let states =
            found.nodes.iter().flat_map(|&row| &sample.states[row * width..][..width]).copied();
        let together = together(found.nodes.len(), &links);
        let joined = found.nearest.iter().filter(|&&node| together[node as usize]).count();
        let mut map = RoadMap::with_links(width, states.collect(), links, rule);
        map.trust = Some(trust);
        Ok(Self { map, joined: joined as f64 / found.nearest.len() as f64 })
    }
}

/// Nodes by the larger of the distances there and back, and whether they do not cover the rows.
fn choose<B: Backend>(
    measure: &Measure<'_, B>,
    points: &Points<B>,
    some: &impl Fn(&[usize]) -> Result<Points<B>>,
    settings: &PlanSettings,
    (enough, noisy): (f32, bool),
) -> Result<(Cover, bool)> {
    let rows = points.rows();
    let apart = |chosen: &[usize], others: Option<&[usize]>| {
        let chosen = some(chosen)?;
        let others = match others {
            Some(others) => some(others)?,
            None => points.clone(),
        };
        let mut there = measure.pairs(&chosen, &others)?;
        let back = measure.pairs(&others, &chosen)?;
        let (count, columns) = (chosen.rows(), others.rows());
        for (row, distances) in there.chunks_exact_mut(columns).enumerate() {
            for (column, distance) in distances.iter_mut().enumerate() {
                *distance = distance.max(back[column * count + row]);
            }
        }
        Ok(there)
    };
    if !noisy {
        let found = cover(rows, 0, settings.nodes, enough, apart)?;
        if quantile(found.away.clone(), COVERED) <= COVERABLE * enough {
            return Ok((found, false));
        }
    }
    let every = rows.div_ceil(settings.nodes);
    Ok((typical(rows, &(0..rows).step_by(every).collect::<Vec<_>>(), apart)?, true))
}

/// The number that a share of others is below; 0 of none.
pub(super) fn quantile(mut values: Vec<f32>, share: f64) -> f32 {
    values.sort_by(f32::total_cmp);
    let at = (share * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(at).copied().unwrap_or(0.0)
}
