//! The GPU against the CPU at sizes that divide nothing, and where numbers are extreme.

use cm_cuda::{CudaBackend, Precision, testing};
use cm_nn::testing::Exact;
use cm_nn::{
    Activation, Backend, Captured, DfdxBackend, Direction, Initialiser, Over, Parameters, Result,
    Var, gradients,
};
use cm_quasimetric::{Head, Reduction};

/// Values and gradients of `loss` of the inputs, as vectors: the result first.
fn run<B: Backend>(
    backend: &B,
    inputs: &[(usize, usize, Vec<f32>)],
    operation: impl Fn(&[Var<B>]) -> Result<Var<B>>,
) -> Result<Vec<Vec<f32>>> {
    let mut set = Parameters::new(backend);
    for (index, (rows, columns, values)) in inputs.iter().enumerate() {
        let x = set.create(&format!("x{index}"), [*rows, *columns], Initialiser::ZEROS)?;
        x.set(values)?;
    }
    let mut result = None;
    let (_, found) = gradients(backend, &[&set], || {
        let values = set.iter().map(|x| x.value()).collect::<Result<Vec<_>>>()?;
        let y = operation(&values)?;
        result = Some(y.stop_gradient());
        // Different weights for different elements.
        let [rows, columns] = y.shape();
        let weights = Exact::from_fn([rows, columns], |i, j| ((i * 7 + j * 3) % 11) as f64 - 4.5);
        y.mul(&weights.var(backend)?)?.sum(Over::All)
    })?;
    let mut all = vec![result.expect("the loss ran").to_vec()?];
    for x in set.iter() {
        all.push(found.get(x).expect("every input was wanted").to_vec()?);
    }
    Ok(all)
}

/// Runs on both and compares: NaN where NaN, equal infinities, else within `tolerance` of the size
/// of the largest finite number.
fn compare(
    what: &str,
    tolerance: f32,
    inputs: &[(usize, usize, Vec<f32>)],
    cpu: impl Fn(&[Var<DfdxBackend>]) -> Result<Var<DfdxBackend>>,
    gpu: impl Fn(&[Var<CudaBackend>]) -> Result<Var<CudaBackend>>,
) -> Result<()> {
    let expected = run(&DfdxBackend::new(3), inputs, cpu)?;
    let found = run(&shared(), inputs, gpu)?;
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let finite = expected.iter().filter(|x| x.is_finite());
        let typical = finite.fold(0.0_f32, |largest, x| largest.max(x.abs()));
        for (element, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            let is_close = found == expected
                || (found.is_nan() && expected.is_nan())
                || (found - expected).abs() <= tolerance * typical;
            assert!(is_close, "{what}, matrix {index}, element {element}: {found} {expected}");
        }
    }
    Ok(())
}

/// One backend for all comparisons of a thread: opening a device takes a while.
fn shared() -> CudaBackend {
    thread_local! {
        static SHARED: CudaBackend = testing::backend(&[3], Precision::Highest);
    }
    SHARED.with(CudaBackend::clone)
}

fn normal(rows: usize, columns: usize, stream: u32) -> (usize, usize, Vec<f32>) {
    (rows, columns, Exact::normal([rows, columns], stream).to_f32())
}

macro_rules! both {
    ($what:expr, $tolerance:expr, $inputs:expr, $operation:expr) => {
        compare($what, $tolerance, $inputs, $operation, $operation)?
    };
}

fn heads() -> Vec<Head> {
    let iqe = |groups, reduction| Head::Iqe { groups, reduction };
    vec![
        Head::MRN,
        Head::Mrn { components: 4, epsilon: 0.0 },
        Head::Mrn { components: 2, epsilon: 1e-6 },
        Head::Max,
        iqe(1, Reduction::Sum),
        iqe(8, Reduction::Mean),
        iqe(8, Reduction::MaxMean { logit: -0.5 }),
        iqe(4, Reduction::Max),
    ]
}

#[test]
fn layers_of_odd_sizes() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for (n, i, o) in
        [(33, 29, 7), (1, 29, 7), (33, 1, 1), (65, 130, 33), (256, 37, 512), (129, 257, 66)]
    {
        let mut w = normal(i, o, 2);
        w.2.iter_mut().for_each(|w| *w /= (i as f32).sqrt());
        let inputs = [normal(n, i, 1), w, normal(1, o, 3)];
        for activation in [Activation::Silu, Activation::Identity, Activation::Relu] {
            both!(&format!("linear {n} {i} {o}"), 2e-5, &inputs, |x| {
                x[0].linear(&x[1], Some(&x[2]), activation)
            });
        }
    }
    Ok(())
}

#[test]
fn rows_cut_at_places_that_are_not_aligned() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    let inputs = [normal(35, 30, 1), normal(30, 20, 2)];
    both!("products of cut rows", 2e-5, &inputs, |x| {
        let (a, b) = (x[0].slice_rows(1..18)?, x[0].slice_rows(17..34)?);
        let joined = Var::concat_rows(&[&a.matmul(&x[1])?, &b.matmul(&x[1].slice_rows(0..30)?)?])?;
        Var::concat_columns(&[&joined.slice_columns(3..9)?, &joined])
    });
    Ok(())
}

#[test]
fn heads_of_odd_sizes() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for head in heads() {
        for (n, m, width) in [(1, 1, 16), (33, 29, 48), (45, 37, 64), (70, 65, 208), (3, 130, 80)] {
            let inputs = [normal(n, width, 1), normal(m, width, 2)];
            both!(&format!("{head} of {n} and {m}"), 2e-5, &inputs, |x| {
                x[0].distance_pairs(&x[1], head, None)
            });
            let inputs = [normal(n, width, 1), normal(n, width, 2)];
            both!(&format!("{head} of {n} rows"), 2e-5, &inputs, |x| {
                x[0].distance_rows(&x[1], head, None)
            });
        }
    }
    Ok(())
}

/// A group of more features than shared memory has room for.
#[test]
fn large_groups() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    let head = Head::Iqe { groups: 2, reduction: Reduction::Sum };
    let inputs = [normal(5, 400, 1), normal(9, 400, 2)];
    both!("large groups", 2e-5, &inputs, |x| x[0].distance_pairs(&x[1], head, None));
    Ok(())
}

/// Equal points, ties, subnormal, huge, overflowing and infinite features.
#[test]
fn heads_of_extreme_features() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    let width = 16;
    let mut rows = vec![
        vec![0.0; width],
        vec![1.0; width],
        Exact::normal([1, width], 1).to_f32(),
        Exact::normal([1, width], 1).map_f32(|x| x * 1e-30).to_f32(),
        Exact::normal([1, width], 2).map_f32(|x| x * 1e-42).to_f32(),
        Exact::normal([1, width], 3).map_f32(|x| x * 1e25).to_f32(),
        vec![2e38; width],
        vec![-2e38; width],
    ];
    let mut alternating = vec![0.5; width];
    alternating.iter_mut().step_by(2).for_each(|x| *x = -0.5);
    rows.push(alternating);
    let finite = rows.concat();
    let count = rows.len();
    for head in heads() {
        // The gradients of one pair at a time, since one that overflows drowns the others.
        for i in 0..count {
            for j in 0..count {
                let inputs = [(1, width, rows[i].clone()), (1, width, rows[j].clone())];
                both!(&format!("{head}, {i} to {j}"), 1e-5, &inputs, |x| {
                    x[0].distance_pairs(&x[1], head, None)
                });
                both!(&format!("{head}, {i} beside {j}"), 1e-5, &inputs, |x| {
                    x[0].distance_rows(&x[1], head, None)
                });
            }
        }
        // Values alone where features are not finite.
        let mut bad = finite.clone();
        bad[3] = f32::INFINITY;
        bad[2 * width + 5] = f32::NAN;
        let pairs = |values: &[f32]| {
            let cpu = DfdxBackend::new(0);
            let gpu = shared();
            let a = Var::new(&cpu, [count, width], values.to_vec())?;
            let b = Var::new(&gpu, [count, width], values.to_vec())?;
            Ok::<_, cm_nn::Error>([
                a.distance_pairs(&a, head, None)?.to_vec()?,
                b.distance_pairs(&b, head, None)?.to_vec()?,
                a.distance_rows(&a.roll_rows(1)?, head, None)?.to_vec()?,
                b.distance_rows(&b.roll_rows(1)?, head, None)?.to_vec()?,
            ])
        };
        let [a, b, c, d] = pairs(&bad)?;
        for (index, (cpu, gpu)) in a.iter().zip(&b).chain(c.iter().zip(&d)).enumerate() {
            let is_close = cpu == gpu
                || (cpu.is_nan() && gpu.is_nan())
                || (cpu - gpu).abs() <= 1e-5 * cpu.abs();
            assert!(is_close, "{head}, {index}: {gpu} {cpu}");
        }
    }
    Ok(())
}

/// The loss of CMD-1's first stage follows the CPU's for a while.
#[test]
fn training_follows_the_cpu() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    fn losses<B: Backend>(backend: &B) -> Result<Vec<f32>> {
        use cm_nn::{Adam, AdamSettings, Mlp, MlpSettings};
        let mut parameters = Parameters::new(backend);
        let settings = MlpSettings {
            hidden: vec![64, 64],
            activation: Activation::Silu,
            ..Default::default()
        };
        let network = Mlp::new(&mut parameters, "network", 29, &settings, 32)?;
        let adam = AdamSettings { learning_rate: 1e-3, ..Default::default() };
        let adam = Adam::new(&parameters, adam)?;
        let x = Exact::normal([33, 29], 1).var(backend)?;
        let mut step: Captured<'_, Var<B>> = backend.capture(|| {
            let (loss, mut found) = gradients(backend, &[&parameters], || {
                let noise = Var::normal(backend, x.shape(), 0x100)?.scale(0.1)?;
                let (a, b) = (network.forward(&x)?, network.forward(&x.add(&noise)?)?);
                a.distance_pairs(&b, Head::MRN, None)?.neg()?.info_nce(Direction::Symmetric)
            })?;
            adam.step(&mut found)?;
            backend.advance()?;
            Ok(loss)
        });
        (0..60).map(|_| step.run()?.item()).collect()
    }
    let expected = losses(&DfdxBackend::new(5))?;
    for (precision, tolerance) in
        [(Precision::Highest, 2e-3), (Precision::Tf32, 1e-2), (Precision::Bf16, 1e-1)]
    {
        let found = losses(&testing::backend(&[5], precision))?;
        for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let error = (found - expected).abs();
            assert!(
                error <= tolerance * expected.abs().max(0.1),
                "{precision}, step {step}: {found} {expected}"
            );
        }
    }
    assert!(expected[59] < 0.5 * expected[0], "{expected:?}");
    Ok(())
}
