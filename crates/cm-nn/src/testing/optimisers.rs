//! Adam, gradient descent and target networks.

use super::{Exact, Suite};
use crate::{
    Adam, AdamSettings, Backend, Decay, Ema, Error, Gradients, Initialiser, Over, Parameters,
    Result, Sgd, Snapshot, gradients,
};

const SHAPES: [[usize; 2]; 3] = [[3, 4], [1, 1], [180, 200]];

fn parameters<B: Backend>(backend: &B) -> Result<Parameters<B>> {
    let mut parameters = Parameters::new(backend);
    for (index, shape) in SHAPES.into_iter().enumerate() {
        parameters.create(&format!("p{index}"), shape, Initialiser::LECUN_NORMAL)?;
    }
    Ok(parameters)
}

/// Gradients that are the given constants: of the sum of products with them.
fn constant_gradients<B: Backend>(
    parameters: &Parameters<B>,
    constants: &[Exact],
) -> Result<Gradients<B>> {
    let backend = parameters.backend();
    let (_, gradients) = gradients(backend, &[parameters], || {
        let terms = parameters.iter().zip(constants);
        let mut terms = terms.map(|(p, g)| p.value()?.mul(&g.var(backend)?)?.sum(Over::All));
        let first = terms.next().unwrap_or(Err(Error::NestedGradients));
        terms.fold(first, |sum, term| sum?.add(&term?))
    })?;
    Ok(gradients)
}

fn constants(step: u32, scale: f64) -> Vec<Exact> {
    let streams = (0..).map(|index| 10 * step + index);
    SHAPES
        .iter()
        .zip(streams)
        .map(|(&shape, stream)| Exact::normal(shape, stream).map_f32(|g| scale * g))
        .collect()
}

/// [`Backend::adam`]: five steps against double precision, with and without clipping, at a rate
/// that stays and at ones that fall.
pub fn adam<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let cosine = |steps, to| Decay::Cosine { steps, to };
    let cases = [
        (None, Decay::None),
        (Some(1e9), Decay::None),
        (Some(2.0), Decay::None),
        (None, cosine(10, 0.0)),
        (Some(2.0), cosine(3, 0.25)),
    ];
    for (clip, decay) in cases {
        let backend = suite.make(0);
        let parameters = parameters(&backend)?;
        let settings = AdamSettings {
            learning_rate: 0.01,
            beta1: 0.8,
            beta2: 0.95,
            epsilon: 1e-3,
            clip,
            decay,
        };
        let adam = Adam::new(&parameters, settings)?;
        let mut expected =
            parameters.iter().map(|p| Exact::read(&p.value()?)).collect::<Result<Vec<_>>>()?;
        let mut moments =
            expected.iter().map(|p| (p.map(|_| 0.0), p.map(|_| 0.0))).collect::<Vec<_>>();
        for step in 1..=5 {
            // Gradients of very different lengths, so that clipping bites in some steps only.
            let gradients = constants(step, 10.0_f64.powi(step as i32 - 4));
            adam.step(&mut constant_gradients(&parameters, &gradients)?)?;
            reference_step(&settings, step, &gradients, &mut expected, &mut moments);
        }
        for (index, (p, expected)) in parameters.iter().zip(&expected).enumerate() {
            let found = Exact::read(&p.value()?)?;
            found.assert_close(expected, 1e-5, &format!("parameter {index}, {settings:?}"));
        }
        let state = adam.snapshot(0)?;
        assert_eq!(state.get("step").map(|step| step.values[0]), Some(5.0));
        for (index, (m, v)) in moments.iter().enumerate() {
            for (kind, expected) in [("first", m), ("second", v)] {
                let found = state.get(&format!("{kind}/p{index}")).cloned();
                let found = found.unwrap_or_else(|| panic!("no {kind} moment"));
                let values = found.values.into_iter().map(f64::from).collect();
                Exact { shape: found.shape, values }.assert_close(expected, 1e-5, kind);
            }
        }
    }
    Ok(())
}

fn reference_step(
    settings: &AdamSettings,
    step: u32,
    gradients: &[Exact],
    parameters: &mut [Exact],
    moments: &mut [(Exact, Exact)],
) {
    let [beta1, beta2] = [settings.beta1, settings.beta2].map(f64::from);
    let norm = gradients.iter().map(|g| g.dot(g)).sum::<f64>().sqrt();
    let scale = settings.clip.map_or(1.0, |clip| (f64::from(clip) / norm).min(1.0));
    let share = match settings.decay {
        Decay::None => 1.0,
        Decay::Cosine { steps, to } => {
            let done = f64::from((step - 1).min(steps)) / f64::from(steps);
            let falling = (1.0 + (std::f64::consts::PI * done).cos()) / 2.0;
            f64::from(to) * (1.0 - falling) + falling
        }
    };
    let rate = f64::from(settings.learning_rate) * share;
    for ((p, g), (m, v)) in parameters.iter_mut().zip(gradients).zip(moments) {
        for index in 0..p.values.len() {
            let g = scale * g.values[index];
            let (m, v) = (&mut m.values[index], &mut v.values[index]);
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            let (m, v) =
                (*m / (1.0 - beta1.powi(step as i32)), *v / (1.0 - beta2.powi(step as i32)));
            p.values[index] -= rate * m / (v.sqrt() + f64::from(settings.epsilon));
        }
    }
}

/// Saving in the middle, as safetensors and as bincode, and going on from there gives the very same
/// numbers as never having stopped.
pub fn adam_resumes_exactly<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let decay = Decay::Cosine { steps: 20, to: 0.1 };
    let settings =
        AdamSettings { learning_rate: 0.01, clip: Some(3.0), decay, ..Default::default() };
    let run = |adam: &Adam<B>, parameters: &Parameters<B>, steps: std::ops::Range<u32>| {
        steps.into_iter().try_for_each(|step| {
            adam.step(&mut constant_gradients(parameters, &constants(step, 0.1))?)
        })
    };
    let whole = parameters(&suite.make(0))?;
    let whole_adam = Adam::new(&whole, settings)?;
    run(&whole_adam, &whole, 0..3)?;
    let saved = [whole.snapshot(0)?, whole_adam.snapshot(0)?];
    run(&whole_adam, &whole, 3..6)?;

    let config = bincode::config::standard();
    let through_bincode = |snapshot: &Snapshot| -> Snapshot {
        let bytes =
            bincode::encode_to_vec(snapshot, config).unwrap_or_else(|error| panic!("{error}"));
        bincode::decode_from_slice(&bytes, config).unwrap_or_else(|error| panic!("{error}")).0
    };
    let through_safetensors = |snapshot: &Snapshot| -> Snapshot {
        let bytes = snapshot.to_safetensors().unwrap_or_else(|error| panic!("{error}"));
        Snapshot::from_safetensors(&bytes).unwrap_or_else(|error| panic!("{error}"))
    };
    let ways: [&dyn Fn(&Snapshot) -> Snapshot; 2] = [&through_bincode, &through_safetensors];
    for way in ways {
        let resumed = parameters(&suite.make(0))?;
        let adam = Adam::new(&resumed, settings)?;
        resumed.restore(0, &way(&saved[0]))?;
        adam.restore(0, &way(&saved[1]))?;
        run(&adam, &resumed, 3..6)?;
        assert_eq!(resumed.snapshot(0)?, whole.snapshot(0)?);
        assert_eq!(adam.snapshot(0)?, whole_adam.snapshot(0)?);
    }
    let adam = Adam::new(&whole, settings)?;
    let before = adam.snapshot(0)?;
    assert!(matches!(adam.restore(0, &saved[0]), Err(Error::MissingParameter { .. })));
    assert_eq!(adam.snapshot(0)?, before);
    Ok(())
}

/// [`Backend::sgd`], and an optimiser beside another on one set of gradients.
pub fn sgd<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let set = |value| {
        let mut set = Parameters::new(&backend);
        let x = set.create("x", [1, 2], Initialiser::Constant(value))?;
        Ok::<_, Error>((set, x))
    };
    let ((duals, dual), (others, other)) = (set(1.0)?, set(2.0)?);
    let (_, mut found) = gradients(&backend, &[&duals, &others], || {
        dual.value()?.mul(&other.value()?)?.sum(Over::All)
    })?;
    let sgd = Sgd::new(&duals, 0.25)?;
    sgd.step(&mut found)?;
    assert_eq!(dual.to_vec()?, [0.5, 0.5]);
    assert_eq!(other.to_vec()?, [2.0, 2.0]);
    // Its gradients are used up; those of the other set are still there.
    assert!(matches!(sgd.step(&mut found), Err(Error::MissingParameter { .. })));
    Sgd::new(&others, 1.0)?.step(&mut found)?;
    assert_eq!(other.to_vec()?, [1.0, 1.0]);
    for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert!(matches!(Sgd::new(&duals, rate), Err(Error::Setting { .. })));
    }
    Ok(())
}

/// [`Backend::blend`].
pub fn blend<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let (sources, targets) = (parameters(&backend)?, parameters(&backend)?);
    let ema = Ema::new(&targets, &sources, 0.9)?;
    assert_eq!(targets.snapshot(0)?, sources.snapshot(0)?);
    let mut expected =
        sources.iter().map(|p| Exact::read(&p.value()?)).collect::<Result<Vec<_>>>()?;
    for step in 0..3 {
        for ((source, new), expected) in sources.iter().zip(constants(step, 1.0)).zip(&mut expected)
        {
            source.set(&new.to_f32())?;
            let values = expected.values.iter_mut().zip(&new.values);
            values.for_each(|(x, new)| *x = 0.9 * *x + 0.1 * new);
        }
        ema.step()?;
    }
    for (target, expected) in targets.iter().zip(&expected) {
        Exact::read(&target.value()?)?.assert_close(expected, 1e-5, "target");
    }
    // A set blended with itself stays.
    let before = sources.snapshot(0)?;
    Ema::new(&sources, &sources, 0.5)?.step()?;
    assert_eq!(sources.snapshot(0)?, before);
    assert!(Ema::new(&targets, &Parameters::new(&backend), 0.5).is_err());
    assert!(Ema::new(&Parameters::new(&backend), &sources, 0.5).is_err());
    assert!(matches!(Ema::new(&targets, &sources, 1.5), Err(Error::Setting { .. })));
    Ok(())
}
