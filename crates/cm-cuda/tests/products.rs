//! Products of every form of kernel: against the highest precision, and replicas against single
//! runs.

use cm_cuda::{CudaBackend, Precision, testing};
use cm_nn::testing::Exact;
use cm_nn::{Activation, Backend, Initialiser, Over, Parameters, Result, Values, Var, gradients};

/// Rows, inputs and outputs: few tiles and many, sums in one part and in several, sizes that divide
/// nothing.
const SIZES: [[usize; 3]; 9] = [
    [256, 512, 512],
    [512, 37, 512],
    [256, 512, 8],
    [33, 29, 7],
    [1, 700, 130],
    [1024, 1024, 1024],
    [2048, 1024, 512],
    [3072, 66, 1024],
    [1000, 1030, 1026],
];

/// A layer, and the gradients with respect to its input, weights and bias.
fn layer(backend: &CudaBackend, [rows, inputs, outputs]: [usize; 3]) -> Result<Vec<Values>> {
    let mut set = Parameters::new(backend);
    let mut create = |name, shape| set.create(name, shape, Initialiser::LECUN_NORMAL);
    let x = create("x", [rows, inputs])?;
    let w = create("w", [inputs, outputs])?;
    let b = create("b", [1, outputs])?;
    let weights = Exact::normal([rows, outputs], 9).var(backend)?;
    let mut y = None;
    let (_, found) = gradients(backend, &[&set], || {
        let out = x.value()?.linear(&w.value()?, Some(&b.value()?), Activation::Identity)?;
        y = Some(out.stop_gradient());
        out.mul(&weights)?.sum(Over::All)
    })?;
    let found = [&x, &w, &b].map(|parameter| found.get(parameter));
    let all = y.into_iter().chain(found.into_iter().flatten()).collect::<Vec<_>>();
    Var::read(&all.iter().collect::<Vec<_>>())
}

/// Two layers, one of them used twice, and the gradients with respect to everything: results are
/// stored as operands of the next products if the step is captured.
fn network(backend: &CudaBackend, rows: usize, captured: bool) -> Result<Vec<Values>> {
    let mut set = Parameters::new(backend);
    let mut create = |name, shape| set.create(name, shape, Initialiser::LECUN_NORMAL);
    let x = create("x", [rows, 70])?;
    let (w, v) = (create("w", [70, 130])?, create("v", [130, 130])?);
    let (b, c) = (create("b", [1, 130])?, create("c", [1, 130])?);
    let weights = Exact::normal([rows, 130], 9).var(backend)?;
    let step = || {
        let mut result = None;
        let (_, found) = gradients(backend, &[&set], || {
            let (v, c) = (v.value()?, c.value()?);
            let y = x.value()?.linear(&w.value()?, Some(&b.value()?), Activation::Silu)?;
            let y = y.linear(&v, Some(&c), Activation::Silu)?;
            let y = y.linear(&v, Some(&c), Activation::Identity)?;
            result = Some(y.stop_gradient());
            y.mul(&weights)?.sum(Over::All)
        })?;
        let found = [&x, &w, &v, &b, &c].map(|parameter| found.get(parameter));
        Ok(result.into_iter().chain(found.into_iter().flatten()).collect::<Vec<_>>())
    };
    let mut capture = backend.capture(step);
    let all = if captured { capture.run()?.clone() } else { step()? };
    Var::read(&all.iter().collect::<Vec<_>>())
}

#[test]
fn a_captured_step_has_the_products_of_an_eager_one() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for precision in [Precision::Tf32, Precision::Bf16] {
        for (rows, seeds) in [(33, &[3][..]), (200, &[3, 4]), (2000, &[3, 4, 5])] {
            let backend = testing::backend(seeds, precision);
            let (captured, eager) =
                (network(&backend, rows, true)?, network(&backend, rows, false)?);
            assert_eq!(captured.len(), 6);
            for (what, (captured, eager)) in captured.iter().zip(&eager).enumerate() {
                assert_eq!(captured, eager, "{rows} rows, {precision}, result {what}");
            }
        }
    }
    Ok(())
}

/// Rows divided by their lengths, twice, as actions are, in a layer before and after, and the
/// gradients with respect to everything.
fn directions(
    backend: &CudaBackend,
    [rows, columns]: [usize; 2],
    captured: bool,
) -> Result<Vec<Values>> {
    let mut set = Parameters::new(backend);
    let mut create = |name, shape| set.create(name, shape, Initialiser::LECUN_NORMAL);
    let x = create("x", [rows, 70])?;
    let (w, v) = (create("w", [70, columns])?, create("v", [columns, 40])?);
    let weights = Exact::normal([rows, 40], 9).var(backend)?;
    let step = || {
        let mut result = None;
        let (_, found) = gradients(backend, &[&set], || {
            let y = x.value()?.linear(&w.value()?, None, Activation::Identity)?;
            let y = y.l2_normalize(1e-3)?.l2_normalize(0.5)?;
            let y = y.linear(&v.value()?, None, Activation::Silu)?;
            result = Some(y.stop_gradient());
            y.mul(&weights)?.sum(Over::All)
        })?;
        let found = [&x, &w, &v].map(|parameter| found.get(parameter));
        Ok(result.into_iter().chain(found.into_iter().flatten()).collect::<Vec<_>>())
    };
    let mut capture = backend.capture(step);
    let all = if captured { capture.run()?.clone() } else { step()? };
    Var::read(&all.iter().collect::<Vec<_>>())
}

#[test]
fn rows_of_length_1_are_stored_as_operands() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for sizes in [[256, 2], [33, 3], [100, 7], [65, 16], [200, 17]] {
        let expected = directions(&testing::backend(&[3], Precision::Highest), sizes, false)?;
        for (precision, tolerance) in [(Precision::Tf32, 3e-3), (Precision::Bf16, 3e-2)] {
            let alone = testing::backend(&[3], precision);
            let captured = directions(&alone, sizes, true)?;
            assert_eq!(captured.len(), 4);
            assert_eq!(captured, directions(&alone, sizes, false)?, "{sizes:?}, {precision}");
            let seeds = [3, 4, 5, 6, 7, 8, 9, 10];
            let together = directions(&testing::backend(&seeds, precision), sizes, true)?;
            let all = captured.iter().zip(&together).zip(&expected);
            for (what, ((found, together), expected)) in all.enumerate() {
                let what = format!("{sizes:?}, {precision}, result {what}");
                assert_eq!(found.replica(0), together.replica(0), "{what}");
                let error = relative_error(found.replica(0), expected.replica(0));
                assert!(error < tolerance, "{what}: {error}");
            }
        }
    }
    Ok(())
}

fn relative_error(found: &[f32], expected: &[f32]) -> f64 {
    let norm = |terms: &mut dyn Iterator<Item = f64>| terms.map(|x| x * x).sum::<f64>().sqrt();
    let pairs = found.iter().zip(expected);
    let error = norm(&mut pairs.map(|(&x, &y)| f64::from(x) - f64::from(y)));
    error / norm(&mut expected.iter().map(|&x| f64::from(x)))
}

#[test]
fn products_are_as_exact_as_their_operands() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for sizes in SIZES {
        let expected = layer(&testing::backend(&[3], Precision::Highest), sizes)?;
        for (precision, tolerance) in [(Precision::Tf32, 1e-3), (Precision::Bf16, 1e-2)] {
            let found = layer(&testing::backend(&[3], precision), sizes)?;
            for (what, (found, expected)) in
                ["y", "dx", "dw", "db"].iter().zip(found.iter().zip(&expected))
            {
                let error = relative_error(found.replica(0), expected.replica(0));
                assert!(error < tolerance, "{sizes:?}, {precision}, {what}: {error}");
            }
        }
    }
    Ok(())
}

#[test]
fn replicas_have_the_products_of_single_runs() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for sizes in SIZES {
        for precision in [Precision::Tf32, Precision::Bf16] {
            let alone = layer(&testing::backend(&[3], precision), sizes)?;
            for seeds in [&[3, 4][..], &[1, 2, 3], &[3, 4, 5, 6, 7, 8, 9, 10]] {
                let together = layer(&testing::backend(seeds, precision), sizes)?;
                let place = seeds.iter().position(|&seed| seed == 3).unwrap_or(0);
                for (alone, together) in alone.iter().zip(&together) {
                    let is_same = alone.replica(0) == together.replica(place);
                    assert!(is_same, "{sizes:?}, {precision}, {} seeds", seeds.len());
                }
            }
        }
    }
    Ok(())
}
