//! The numbers do not depend on how many threads compute them.

use cm_nn::{
    Activation, Adam, AdamSettings, Backend, DfdxBackend, Direction, Mlp, MlpSettings, Over,
    Parameters, Result, Snapshot, Var, gradients,
};
use cm_quasimetric::Head;

/// Steps of a learner whose matrices are large enough to be split among threads.
fn train(activation: Activation, layer_norm: bool) -> Result<[Snapshot; 2]> {
    let backend = DfdxBackend::new(3);
    let mut parameters = Parameters::new(&backend);
    let settings =
        MlpSettings { hidden: vec![200, 210], activation, layer_norm, ..Default::default() };
    let network = Mlp::new(&mut parameters, "network", 19, &settings, 130)?;
    let adam = Adam::new(&parameters, AdamSettings { clip: Some(0.5), ..Default::default() })?;
    for _ in 0..3 {
        let (_, mut found) = gradients(&backend, &[&parameters], || {
            let x = Var::normal(&backend, [500, 19], 0x100)?;
            let features = network.forward(&x)?;
            let (a, b) = (features.slice_rows(0..250)?, features.slice_rows(250..500)?);
            let logits = a.distance_pairs(&b, Head::MRN, None)?.neg()?;
            let partner = logits.categorical(0x101)?;
            let penalty = logits.log_sum_exp(Over::Rows)?.square()?.mean(Over::All)?;
            let moved = a.gather_rows(&partner)?.sub(&a)?.square()?.mean(Over::All)?;
            logits.info_nce(Direction::Symmetric)?.add(&penalty)?.add(&moved)
        })?;
        adam.step(&mut found)?;
        backend.advance()?;
    }
    Ok([parameters.snapshot(0)?, adam.snapshot(0)?])
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for (activation, layer_norm) in [(Activation::Relu, false), (Activation::Gelu, true)] {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| train(activation, layer_norm)).unwrap()
        };
        let one = run(1);
        assert!(one[0].iter().all(|(_, matrix)| matrix.values.iter().all(|x| x.is_finite())));
        for threads in [2, 3, 5] {
            assert_eq!(run(threads), one, "{threads} threads, {activation:?}");
        }
    }
}
