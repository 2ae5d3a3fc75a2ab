//! Launches of one kernel that do not wait for each other run as one: a device takes about as long
//! to begin a kernel as a small one takes to run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use crate::Result;
use crate::compile::Module;
use crate::driver::{LaunchShape, Packed};
use crate::launch::{Launch, Use};
use crate::memory::Buffer;
use crate::schedule::Order;

/// `MEMBERS` of `common.cuh`.
const MEMBERS: usize = 8;
/// More blocks keep a device busy by themselves.
const MOST_BLOCKS: u32 = 256;

/// One launch, or several of one kernel as one.
pub(crate) struct Group {
    /// At least one.
    members: Vec<Launch>,
}

impl Group {
    pub(crate) fn module(&self) -> Module {
        self.members[0].module
    }

    /// The name of the kernel to launch.
    pub(crate) fn kernel(&self) -> Cow<'static, str> {
        match &self.members[..] {
            [one] => one.kernel.into(),
            [first, ..] => format!("{}_group", first.kernel).into(),
            [] => "".into(),
        }
    }

    /// Blocks for the largest member; replicas of one member after another.
    pub(crate) fn shape(&self) -> LaunchShape {
        let mut shape = self.members[0].shape;
        for LaunchShape { blocks: [x, y, _], shared, .. } in self.members.iter().map(|m| m.shape) {
            shape.blocks[0] = shape.blocks[0].max(x);
            shape.blocks[1] = shape.blocks[1].max(y);
            shape.shared = shape.shared.max(shared);
        }
        shape.blocks[2] *= self.members.len() as u32;
        shape
    }

    /// The arguments in memory; every buffer must have its place.
    pub(crate) fn pack(&self) -> Result<Packed> {
        if let [one] = &self.members[..] {
            return one.pack();
        }
        let replicas = self.members[0].shape.blocks[2];
        let mut extents = [replicas, 0].map(u32::to_ne_bytes).concat();
        for axis in 0..2 {
            let sizes = self.members.iter().map(|member| member.shape.blocks[axis] as u16);
            let sizes = sizes.chain(std::iter::repeat(0)).take(MEMBERS);
            extents.extend(sizes.flat_map(u16::to_ne_bytes));
        }
        let mut arguments = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            arguments.extend(member.in_a_row(index * replicas as usize)?);
        }
        arguments.resize(arguments.len() / self.members.len() * MEMBERS, 0);
        let mut packed = Packed::default();
        packed.push(&extents);
        packed.push(&arguments);
        Ok(packed)
    }

    /// Visits every buffer with what happens to it.
    pub(crate) fn each_use(&self, mut visit: impl FnMut(&Rc<Buffer>, Use)) {
        self.members.iter().for_each(|member| member.each_use(&mut visit));
    }

    /// The buffers' numbers, and what happens to them.
    pub(crate) fn uses(&self) -> Vec<(u64, Use)> {
        let mut uses = Vec::new();
        self.each_use(|buffer, what| uses.push((buffer.number(), what)));
        uses
    }

    /// Whether `launch` can be one of this group, if it waits for none of them.
    fn takes(&self, launch: &Launch) -> bool {
        let first = &self.members[0];
        let of = |launch: &Launch| {
            let LaunchShape { blocks: [.., replicas], threads, cluster, .. } = launch.shape;
            (launch.module, launch.kernel, replicas, threads, cluster)
        };
        self.members.len() < MEMBERS && of(first) == of(launch)
    }
}

/// Groups launches that would run at about the same time. None starts so late that the step would
/// take longer, if the times that [`cost`] guesses were true and there were room for everything.
pub(crate) fn group(launches: Vec<Launch>) -> Vec<Group> {
    let uses = launches.iter().map(|launch| {
        let mut uses = Vec::new();
        launch.each_use(|buffer, what| uses.push((buffer.number(), what)));
        uses
    });
    let order = Order::new(&uses.collect::<Vec<_>>());
    let costs = launches.iter().map(cost).collect::<Vec<_>>();
    let latest = latest_starts(&order, &costs);
    let mut plan = Plan::default();
    let mut waiting = launches.into_iter().map(Some).collect::<Vec<_>>();
    for _ in 0..waiting.len() {
        let ready = waiting.iter().enumerate().filter(|(_, launch)| launch.is_some());
        let starts = ready.filter_map(|(step, _)| Some((plan.earliest(order.waits(step))?, step)));
        let next = starts.min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((start, step)) = next else { break };
        if let Some(launch) = waiting[step].take() {
            plan.put(step, launch, start, latest[step], costs[step]);
        }
    }
    plan.in_order()
}

/// Groups with the times they are planned for, in microseconds.
#[derive(Default)]
struct Plan {
    groups: Vec<Planned>,
    /// The group of each launch that has one.
    places: HashMap<usize, usize>,
}

struct Planned {
    group: Group,
    start: f32,
    /// What the start may be put off to.
    latest: f32,
    cost: f32,
}

impl Plan {
    /// When a launch that waits for these can start; `None` if not all of them are planned.
    fn earliest(&self, waits: &[usize]) -> Option<f32> {
        waits.iter().try_fold(0.0, |start: f32, wait| {
            let planned = &self.groups[*self.places.get(wait)?];
            Some(start.max(planned.start + planned.cost))
        })
    }

    /// Launches come by their earliest start: as long as a group has not ended by then, nothing
    /// that waits for it is planned yet, and it may still be put off.
    fn put(&mut self, step: usize, launch: Launch, start: f32, latest: f32, cost: f32) {
        let can_join =
            launch.is_groupable() && launch.shape.blocks.iter().product::<u32>() <= MOST_BLOCKS;
        let found = self.groups.iter().position(|planned| {
            can_join
                && start < planned.start + planned.cost
                && start <= planned.latest
                && planned.start <= latest
                && planned.group.takes(&launch)
        });
        let place = found.unwrap_or(self.groups.len());
        match found {
            Some(place) => {
                let planned = &mut self.groups[place];
                planned.group.members.push(launch);
                planned.start = planned.start.max(start);
                planned.latest = planned.latest.min(latest);
                planned.cost = planned.cost.max(cost);
            }
            None => {
                let group = Group { members: vec![launch] };
                self.groups.push(Planned { group, start, latest, cost });
            }
        }
        self.places.insert(step, place);
    }

    /// By their start: what waits for others comes after them.
    fn in_order(self) -> Vec<Group> {
        let mut groups = self.groups;
        groups.sort_by(|a, b| a.start.total_cmp(&b.start));
        groups.into_iter().map(|planned| planned.group).collect()
    }
}

/// How late each step can start without the last one ending later.
fn latest_starts(order: &Order, costs: &[f32]) -> Vec<f32> {
    let mut ends = Vec::<f32>::new();
    for (step, cost) in costs.iter().enumerate() {
        let start = order.waits(step).iter().map(|&wait| ends[wait]).fold(0.0, f32::max);
        ends.push(start + cost);
    }
    let last = ends.into_iter().fold(0.0, f32::max);
    let mut latest = costs.iter().map(|cost| last - cost).collect::<Vec<_>>();
    for step in (0..costs.len()).rev() {
        for &wait in order.waits(step) {
            latest[wait] = latest[wait].min(latest[step] - costs[wait]);
        }
    }
    latest
}

/// About how many microseconds a launch takes from the end of the one before it, as measured on an
/// H200.
fn cost(launch: &Launch) -> f32 {
    let blocks = launch.shape.blocks.iter().product::<u32>() as f32;
    match launch.module {
        Module::Product(_) | Module::Warpgroups(_) => 4.0 + blocks / 128.0,
        Module::ResidualPairs | Module::Iqe => 4.0 + blocks / 16.0,
        Module::Optimise => 3.0 + blocks / 128.0,
        Module::ResidualGradient => 3.0 + blocks / 64.0,
        _ => 2.0 + blocks / 512.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Argument, View};

    fn launch(kernel: &'static str, blocks: u32, uses: &[(&Rc<Buffer>, Use)]) -> Launch {
        let shape = LaunchShape { blocks: [blocks, 1, 2], threads: 256, shared: 0, cluster: 1 };
        let arguments = uses.iter().map(|&(buffer, what)| {
            Argument::Matrix(View { buffer: buffer.clone(), offset: 0 }, what)
        });
        Launch { module: Module::Elementwise, kernel, shape, arguments: arguments.collect() }
    }

    fn buffers<const N: usize>() -> [Rc<Buffer>; N] {
        std::array::from_fn(|_| Rc::new(Buffer::planned(4, 2)))
    }

    /// The kernels and how many members each has.
    fn kernels(groups: &[Group]) -> Vec<(String, usize)> {
        groups.iter().map(|group| (group.kernel().into_owned(), group.members.len())).collect()
    }

    fn expected(kernels: &[(&str, usize)]) -> Vec<(String, usize)> {
        kernels.iter().map(|&(kernel, members)| (kernel.to_owned(), members)).collect()
    }

    #[test]
    fn branches_of_equal_kernels_become_one() {
        let [a, b, c, d, e, f] = buffers();
        let groups = group(vec![
            launch("map", 3, &[(&a, Use::Read), (&c, Use::Write)]),
            launch("zip", 3, &[(&c, Use::Read), (&d, Use::Write)]),
            launch("map", 5, &[(&b, Use::Read), (&e, Use::Write)]),
            launch("zip", 5, &[(&e, Use::Read), (&f, Use::Write)]),
            launch("map", 1, &[(&d, Use::Read), (&f, Use::Update)]),
        ]);
        let found = expected(&[("map_group", 2), ("zip_group", 2), ("map", 1)]);
        assert_eq!(kernels(&groups), found);
        assert_eq!(groups[0].shape().blocks, [5, 1, 4]);
        assert_eq!(groups[2].shape().blocks, [1, 1, 2]);
        let order = Order::new(&groups.iter().map(Group::uses).collect::<Vec<_>>());
        assert_eq!([order.waits(1), order.waits(2)], [[0], [1]]);
    }

    #[test]
    fn nothing_waits_for_what_would_make_the_step_longer() {
        let [a, b, c, d, e] = buffers();
        // The long branch must not wait for the first kernel of the short one.
        let groups = group(vec![
            launch("fill", 1, &[(&a, Use::Write)]),
            launch("map", 1, &[(&a, Use::Read), (&b, Use::Write)]),
            launch("map", 1, &[(&c, Use::Write)]),
            launch("zip", 1, &[(&c, Use::Read), (&d, Use::Write)]),
            launch("zip", 1, &[(&d, Use::Read), (&e, Use::Write)]),
        ]);
        let found = kernels(&groups);
        assert_eq!(found.iter().filter(|(kernel, _)| kernel == "map").count(), 2, "{found:?}");
    }

    #[test]
    fn what_waits_for_each_other_stays_apart() {
        let [a, b] = buffers();
        let chain = (0..5).map(|_| launch("map", 1, &[(&a, Use::Read), (&b, Use::Update)]));
        assert_eq!(kernels(&group(chain.collect())), vec![("map".to_owned(), 1); 5]);
    }

    #[test]
    fn large_launches_and_other_kernels_stay_alone() {
        let [a, b, c] = buffers();
        let groups = group(vec![
            launch("map", 200, &[(&a, Use::Write)]),
            launch("map", 200, &[(&b, Use::Write)]),
            launch("zip", 1, &[(&c, Use::Write)]),
        ]);
        assert_eq!(kernels(&groups), expected(&[("map", 1), ("map", 1), ("zip", 1)]));
    }

    #[test]
    fn groups_have_room_for_so_many() {
        let targets = buffers::<19>();
        let launches = targets.iter().map(|target| launch("fill", 1, &[(target, Use::Write)]));
        let groups = group(launches.collect());
        let found = expected(&[("fill_group", 8), ("fill_group", 8), ("fill_group", 3)]);
        assert_eq!(kernels(&groups), found);
    }
}
