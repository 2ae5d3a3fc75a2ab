//! Times of replayed steps on the first GPU: a contrastive learner's, its parts, and the heads.
//!
//! Every line is the median of 21 replays of one graph, by the device's own clock.
//!
//! ```sh
//! cargo run --release -p cm-cuda --example step_time
//! ```

mod timing;

use cm_cuda::{CudaBackend, Device, Precision};
use cm_nn::testing::Exact;
use cm_nn::{
    Activation, Adam, AdamSettings, Backend, Direction, Initialiser, Mlp, MlpSettings, Over,
    Parameters, Result, Var, gradients,
};
use cm_quasimetric::{Head, Reduction};

use self::timing::Times;

/// Captures `step`, and prints the time of its replays.
fn time<T>(backend: &CudaBackend, what: &str, step: impl FnMut() -> Result<T>) -> Result<()> {
    let Times { median, each } = timing::time(backend, step)?;
    println!("{what:60} {median:9.1} us, {each:9.1} us each of 100");
    Ok(())
}

fn parameters(backend: &CudaBackend, shapes: &[[usize; 2]]) -> Result<Parameters<CudaBackend>> {
    let mut set = Parameters::new(backend);
    for (index, &shape) in shapes.iter().enumerate() {
        set.create(&format!("x{index}"), shape, Initialiser::LECUN_NORMAL)?;
    }
    Ok(set)
}

/// A layer forward and backward.
fn layer(backend: &CudaBackend, rows: usize, inputs: usize, outputs: usize) -> Result<()> {
    let set = parameters(backend, &[[inputs, outputs], [1, outputs], [rows, inputs]])?;
    let values = || set.iter().map(|x| x.value()).collect::<Result<Vec<_>>>();
    let what = format!("layer {rows} x {inputs} x {outputs}");
    time(backend, &format!("{what}, forward"), || {
        let x = values()?;
        x[2].linear(&x[0], Some(&x[1]), Activation::Silu)
    })?;
    time(backend, &format!("{what}, forward, backward and the sum"), || {
        gradients(backend, &[&set], || {
            let x = values()?;
            x[2].linear(&x[0], Some(&x[1]), Activation::Silu)?.sum(Over::All)
        })
    })
}

/// What a kernel costs in the middle of a graph: `count` layers after each other, and as many small
/// operations.
fn chains(backend: &CudaBackend, rows: usize, width: usize, count: usize) -> Result<()> {
    let set = parameters(backend, &vec![[width, width]; count])?;
    let x = Exact::normal([rows, width], 1).var(backend)?;
    time(backend, &format!("{count} layers {rows} x {width} x {width}"), || {
        set.iter().try_fold(x.clone(), |x, w| x.linear(&w.value()?, None, Activation::Silu))
    })?;
    time(backend, &format!("{count} times affine {rows} x {width}"), || {
        (0..count).try_fold(x.clone(), |x, _| x.affine(0.5, 1.0))
    })
}

/// A head over pairs with InfoNCE, forward and backward.
fn head(backend: &CudaBackend, head: Head, rows: usize, width: usize) -> Result<()> {
    let set = parameters(backend, &[[rows, width], [rows, width]])?;
    let pairs = || {
        let x = set.iter().map(|x| x.value()).collect::<Result<Vec<_>>>()?;
        x[0].distance_pairs(&x[1], head, None)
    };
    let what = format!("{head}, {rows} x {rows} x {width}");
    time(backend, &format!("{what}, forward"), pairs)?;
    time(backend, &format!("{what} with InfoNCE, f+b"), || {
        gradients(backend, &[&set], || pairs()?.neg()?.info_nce(Direction::Symmetric))
    })
}

/// Adam over `count` square matrices.
fn optimiser(backend: &CudaBackend, count: usize, width: usize, clip: Option<f32>) -> Result<()> {
    let set = parameters(backend, &vec![[width, width]; count])?;
    let adam = Adam::new(&set, AdamSettings { clip, ..Default::default() })?;
    time(backend, &format!("Adam of {count} x {width} x {width}, clip {clip:?}"), || {
        let (_, mut found) = gradients(backend, &[&set], || Var::full(backend, [1, 1], 0.0))?;
        adam.step(&mut found)
    })
}

/// One step of a contrastive learner: an encoder of states and actions on three batches of rows,
/// one of goals, distances of all pairs, InfoNCE, Adam.
fn contrastive(backend: &CudaBackend, rows: usize, width: usize) -> Result<()> {
    let (mut q_set, mut c_set) = (Parameters::new(backend), Parameters::new(backend));
    let settings =
        MlpSettings { hidden: vec![width; 4], activation: Activation::Silu, ..Default::default() };
    let q = Mlp::new(&mut q_set, "q", 66, &settings, 512)?;
    let c = Mlp::new(&mut c_set, "c", 58, &settings, 1)?;
    let adams = [&q_set, &c_set].map(|set| Adam::new(set, AdamSettings::default()));
    let [q_adam, c_adam] = adams;
    let (q_adam, c_adam) = (q_adam?, c_adam?);
    let x = Exact::normal([3 * rows, 66], 1).var(backend)?;
    let goals = Exact::normal([rows, 58], 2).var(backend)?;
    let what = format!("contrastive step, batch {rows}, 4 x {width}");
    time(backend, &what, || {
        let (loss, mut found) = gradients(backend, &[&q_set, &c_set], || {
            let noise = Var::normal(backend, x.shape(), 0x100)?;
            let features = q.forward(&x.add(&noise)?)?;
            let (a, b) = (features.slice_rows(0..rows)?, features.slice_rows(rows..2 * rows)?);
            let potential = c.forward(&goals)?.transpose()?;
            let logits = a.distance_pairs(&b, Head::MRN, None)?.neg()?.add(&potential)?;
            logits.info_nce(Direction::Symmetric)
        })?;
        q_adam.step(&mut found)?;
        c_adam.step(&mut found)?;
        backend.advance()?;
        Ok(loss)
    })
}

fn main() -> Result<()> {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
    };
    println!("{:?}", device.info());
    for precision in [Precision::Highest, Precision::Tf32, Precision::Bf16] {
        let backend = CudaBackend::new(&device, &[0], precision)?;
        println!("\n{precision}");
        for (rows, width) in [(256, 512), (768, 512), (1024, 1024), (3072, 1024)] {
            layer(&backend, rows, width, width)?;
        }
        chains(&backend, 256, 512, 20)?;
        contrastive(&backend, 256, 512)?;
        contrastive(&backend, 1024, 1024)?;
        let eight = CudaBackend::new(&device, &[0, 1, 2, 3, 4, 5, 6, 7], precision)?;
        println!("eight seeds at once:");
        contrastive(&eight, 256, 512)?;
    }
    for precision in [Precision::Highest, Precision::Tf32] {
        let backend = CudaBackend::new(&device, &[0], precision)?;
        println!("\nheads, {precision}");
        for (rows, width) in [(256, 512), (1024, 512)] {
            head(&backend, Head::MRN, rows, width)?;
            head(&backend, Head::Mrn { components: 8, epsilon: 0.0 }, rows, width)?;
            head(&backend, Head::Iqe { groups: 64, reduction: Reduction::Mean }, rows, width)?;
        }
    }
    println!("\noptimisers");
    let backend = CudaBackend::new(&device, &[0], Precision::Tf32)?;
    optimiser(&backend, 10, 512, None)?;
    optimiser(&backend, 10, 512, Some(1.0))?;
    optimiser(&backend, 10, 1024, None)?;
    println!("{} MiB held", device.held_bytes() >> 20);
    Ok(())
}
