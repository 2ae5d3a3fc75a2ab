//! One update of the learners of OGBench and of the TMD release against ours: every loss, every
//! gradient, every parameter after the update, and the actions.
//!
//! Reads every safetensors file of a learner in the folder `ogbench` of `CM_FIXTURES`, or the
//! copies in `fixtures/ogbench`. What was made and its sizes come from the files.

mod file;
mod make;
mod names;

use cm_learner::{Learner, Update};
use cm_nn::testing::{Suite, Tolerance};
use cm_nn::{Backend, Parameter, Result};

use self::file::{File, files};
use self::make::{Made, make};

/// Losses, gradients, one update and actions are theirs, within ten times the suite's tolerance.
///
/// In single precision alone: some of these learners weigh rows by the exponential of ten
/// advantages, and with it the rounding of those.
pub fn ogbench_code<B: Backend>(suite: &Suite<B>) -> Result<()> {
    if suite.tolerance.values > Tolerance::SINGLE.values {
        println!("SKIPPED: these files are compared in single precision");
        return Ok(());
    }
    let files = files();
    for agent in ["cmd", "crl", "gcbc", "gciql", "gcivl", "hiql", "qrl", "tmd"] {
        let found = files.iter().any(|file| file.text("agent_name") == agent);
        assert!(found, "no file of a learner {agent}");
    }
    files.iter().try_for_each(|file| check(&suite.make(0), &suite.tolerance, file))
}

fn check<B: Backend>(backend: &B, tolerance: &Tolerance, file: &File) -> Result<()> {
    let Made { learner, losses } = make(backend, file)?;
    let learner: &dyn Learner<B> = &*learner;
    let groups = learner.groups();
    let all = groups.iter().flat_map(|group| group.parameters().iter().cloned());
    let parameters = all.collect::<Vec<Parameter<B>>>();
    for parameter in &parameters {
        parameter.set(&stored(file, "params", parameter.name()))?;
    }
    let batch = file.batch(backend);
    compare_actions(tolerance, file, learner, &batch)?;

    let mut update = Update::new(backend);
    learner.losses(&batch, &mut update)?;
    compare_gradients(tolerance, file, &update, &parameters)?;
    let total = update.losses().iter().map(|(_, loss)| loss.item());
    let total = total.collect::<Result<Vec<_>>>()?.into_iter().map(f64::from).sum::<f64>();
    let moved = parameters.iter().map(|parameter| update.gradient(parameter).is_some());
    let moved = moved.collect::<Vec<_>>();
    let metrics = update.finish(&groups)?;

    let close = |what: &str, found: f64, wanted: f64| {
        let allowed = 10.0 * tolerance.values * (wanted.abs() + 0.01);
        let name = &file.name;
        assert!((found - wanted).abs() <= allowed, "{name}: {what} is {found}, theirs {wanted}");
    };
    close("total", total, file.loss(&["total"]));
    for (ours, theirs) in losses {
        let (_, found) = metrics.iter().find(|(name, _)| name == ours).expect(ours);
        close(ours, f64::from(found.item()?), file.loss(theirs));
    }
    compare_update(tolerance, file, &parameters, &moved)
}

/// What the file has of our parameter.
fn stored(file: &File, kind: &str, ours: &str) -> Vec<f32> {
    let theirs = make::place(file, ours);
    let found = file.of(kind, &theirs);
    found.unwrap_or_else(|| panic!("{}: no {kind}/{} for {ours}", file.name, theirs.name))
}

fn compare_actions<B: Backend>(
    tolerance: &Tolerance,
    file: &File,
    learner: &dyn Learner<B>,
    batch: &cm_learner::Transitions<B>,
) -> Result<()> {
    let Some(wanted) = file.output("out/actions") else { return Ok(()) };
    let found = learner.act(&batch.state, batch.actor_goal())?.to_vec()?;
    assert_eq!(found.len(), wanted.len(), "{}: actions", file.name);
    for (found, wanted) in found.into_iter().zip(wanted) {
        let error = f64::from((found - wanted).abs());
        let allowed = 10.0 * tolerance.values;
        assert!(error <= allowed, "{}: action {found}, theirs {wanted}", file.name);
    }
    Ok(())
}

fn compare_gradients<B: Backend>(
    tolerance: &Tolerance,
    file: &File,
    update: &Update<B>,
    parameters: &[Parameter<B>],
) -> Result<()> {
    let wanted = parameters.iter().map(|parameter| stored(file, "grads", parameter.name()));
    let wanted = wanted.collect::<Vec<_>>();
    let largest = wanted.iter().map(|wanted| norm(wanted.iter().copied())).fold(0.0, f32::max);
    for (parameter, wanted) in parameters.iter().zip(&wanted) {
        let found = match update.gradient(parameter) {
            Some(gradient) => gradient.to_vec()?,
            None => vec![0.0; wanted.len()], // a slow copy, which no loss moves
        };
        let error = norm(found.iter().zip(wanted).map(|(a, b)| a - b));
        // Where the gradient is small against the others, only rounding of those is left.
        let size = norm(wanted.iter().copied()).max(1e-2 * largest);
        let place = format!("{}: gradient of {}", file.name, parameter.name());
        let allowed = 10.0 * tolerance.gradients as f32 * size;
        assert!(error <= allowed, "{place} is off by {error:e} of {size:e}");
    }
    // What their learner holds and ours does not is moved by no loss.
    let ours = parameters.iter().map(|parameter| make::place(file, parameter.name()).name);
    let ours = ours.collect::<Vec<_>>();
    for other in file.names("grads").into_iter().filter(|name| !ours.contains(name)) {
        let values = file.output(&format!("grads/{other}")).unwrap_or(&[]);
        assert!(values.iter().all(|&x| x == 0.0), "{}: {other} has a gradient", file.name);
    }
    Ok(())
}

/// Adam's first step is its rate towards the gradient's sign, whatever the size; where a gradient is
/// all rounding, so is the sign.
fn compare_update<B: Backend>(
    tolerance: &Tolerance,
    file: &File,
    parameters: &[Parameter<B>],
    moved: &[bool],
) -> Result<()> {
    let rate = file.number("lr");
    let gradients = parameters.iter().map(|parameter| stored(file, "grads", parameter.name()));
    let gradients = gradients.collect::<Vec<_>>();
    let largest = gradients.iter().flatten().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    for ((parameter, gradient), &moved) in parameters.iter().zip(&gradients).zip(moved) {
        let wanted = stored(file, "updated", parameter.name());
        let elements = parameter.to_vec()?.into_iter().zip(&wanted).zip(gradient);
        for (index, ((found, wanted), gradient)) in elements.enumerate() {
            let sure = gradient.abs() > 100.0 * tolerance.gradients as f32 * largest;
            let allowed = match (moved, sure) {
                (true, true) => 0.02 * rate,
                (true, false) => 2.1 * rate,
                (false, _) => 0.0,
            } + 1e-6 * wanted.abs().max(1.0);
            let place = format!("{}: {}[{index}]", file.name, parameter.name());
            let error = (found - wanted).abs();
            assert!(error <= allowed, "{place} became {found}, theirs {wanted}");
        }
    }
    Ok(())
}

fn norm(values: impl Iterator<Item = f32>) -> f32 {
    values.map(|x| x * x).sum::<f32>().sqrt()
}
