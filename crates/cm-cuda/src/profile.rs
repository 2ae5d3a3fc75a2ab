//! How long each kernel of a captured step takes: `CM_CUDA_PROFILE=1`.
//!
//! After its first run, every kernel of a step runs alone, some times in one graph, and a table on
//! stderr says how long each took and which ones it waits for. What cells hold is of no use
//! afterwards.

use crate::driver::GraphBuilder;
use crate::launch::Launch;
use crate::schedule::Order;
use crate::{Device, Result};

const REPEATS: usize = 20;

/// Whether profiles are wanted.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os("CM_CUDA_PROFILE").is_some_and(|value| value != "0")
}

/// Prints the table.
pub(crate) fn print(device: &Device, launches: &[Launch], order: &Order) -> Result<()> {
    let mut times = Vec::new();
    for launch in launches {
        let mut graph = GraphBuilder::new(device.context())?;
        for repeat in 0..REPEATS {
            let before = repeat.checked_sub(1);
            device.add_to_graph(&mut graph, launch, before.as_slice(), 0.0)?;
        }
        let graph = graph.finish()?;
        let run = || device.context().launch_graph(&graph);
        run()?;
        let (done, milliseconds) = device.time(run)?;
        done?;
        times.push(1e3 * milliseconds / REPEATS as f32);
    }
    // When each would end if there were room for everything that could run side by side.
    let mut ends = Vec::<f32>::new();
    for (step, time) in times.iter().enumerate() {
        let start = order.waits(step).iter().map(|&wait| ends[wait]).fold(0.0, f32::max);
        ends.push(start + time);
    }
    let (sum, last) = (times.iter().sum::<f32>(), ends.iter().copied().fold(0.0, f32::max));
    eprintln!("profile: {} kernels, {sum:.1} us, longest chain {last:.1} us", launches.len());
    for (step, launch) in launches.iter().enumerate() {
        let [x, y, replicas] = launch.shape.blocks;
        eprintln!(
            "{step:4} {:28} {x:4} x {y:3} x {replicas:2} blocks of {:4} {:8.1} us, ends {:8.1}, after {:?}",
            launch.kernel,
            launch.shape.threads,
            times[step],
            ends[step],
            order.waits(step)
        );
    }
    Ok(())
}
