//! Wrong shapes and settings are refused with the operation, the expected and the found.

use cm_nn::{
    Activation, Adam, AdamSettings, Decay, DfdxBackend, Direction, Error, Initialiser, Mlp,
    MlpSettings, Parameters, Result, Var,
};
use cm_quasimetric::Head;

type V = Var<DfdxBackend>;

fn zeros(rows: usize, columns: usize) -> V {
    Var::full(&DfdxBackend::new(0), [rows, columns], 0.0).unwrap()
}

#[test]
fn shapes_are_named() {
    let backend = DfdxBackend::new(0);
    let (x, y) = (zeros(2, 3), zeros(4, 5));
    let one = zeros(1, 1);
    let range = |operation: &str, found: &str| {
        format!("{operation}: expected a non-empty range within 0..3, found {found}")
    };
    let cases: Vec<(Result<V>, String)> = vec![
        (x.add(&y), "add: expected equal sizes or 1 in each direction, found [2, 3] and [4, 5]".into()),
        (x.maximum(&zeros(2, 2)), "maximum: expected equal sizes or 1 in each direction, found [2, 3] and [2, 2]".into()),
        (x.matmul(&y), "matmul: expected as many columns on the left as rows on the right, found [2, 3] and [4, 5]".into()),
        (
            x.linear(&y, None, Activation::Relu),
            "linear: expected as many columns in the input as rows in the weight, found [2, 3] and [4, 5]".into(),
        ),
        (
            x.linear(&zeros(3, 5), Some(&zeros(1, 4)), Activation::Relu),
            "linear: expected a bias [1, 5], found [1, 4]".into(),
        ),
        (x.layer_norm(&one, &one, 1e-6), "layer_norm: expected gain and bias [1, 3], found [1, 1] and [1, 1]".into()),
        (Var::concat_columns(&[&x, &y]), "concat_columns: expected equal numbers of rows, found [2, 3] and [4, 5]".into()),
        (Var::concat_rows(&[&x, &y]), "concat_rows: expected equal numbers of columns, found [2, 3] and [4, 5]".into()),
        (Var::concat_rows(&[]), "concat_rows: expected at least one matrix, found ".into()),
        (x.slice_columns(1..4), range("slice_columns", "1..4")),
        (x.slice_columns(2..2), range("slice_columns", "2..2")),
        (zeros(3, 1).slice_rows(5..7), range("slice_rows", "5..7")),
        (x.gather_rows(&y), "gather_rows: expected an index of one column, found [4, 5]".into()),
        (x.diagonal(), "diagonal: expected a square matrix, found [2, 3]".into()),
        (x.info_nce(Direction::Rows), "info_nce: expected a square matrix, found [2, 3]".into()),
        (x.distance_rows(&y, Head::Max, None), "distance_rows: expected two matrices of one shape, found [2, 3] and [4, 5]".into()),
        (x.distance_pairs(&y, Head::Max, None), "distance_pairs: expected equal numbers of columns, found [2, 3] and [4, 5]".into()),
        (
            x.tanh_normal_log_density(&x, &y),
            "tanh_normal_log_density: expected mean, scale and action of one shape, found [2, 3] and [2, 3] and [4, 5]".into(),
        ),
        (Var::new(&backend, [2, 3], vec![0.0; 5]), "new: expected 6 values for [2, 3], found 5".into()),
        (Var::new(&backend, [0, 3], vec![]), "new: expected at least one row and one column, found [0, 3]".into()),
        (Var::uniform(&backend, [3, 0], 0x100), "uniform: expected at least one row and one column, found [3, 0]".into()),
        (Var::permutation(&backend, 0, 0x100), "permutation: expected at least one row and one column, found [0, 1]".into()),
    ];
    for (result, message) in cases {
        match result {
            Ok(value) => panic!("{value:?} instead of: {message}"),
            Err(error) => assert_eq!(error.to_string(), message),
        }
    }
    assert_eq!(x.item().unwrap_err().to_string(), "item: expected [1, 1], found [2, 3]");
    assert!(Var::full(&backend, [usize::MAX, 2], 0.0).is_err());
}

#[test]
fn settings_are_checked() {
    let mut parameters = Parameters::new(&DfdxBackend::new(0));
    parameters.create("x", [1, 1], Initialiser::ZEROS).unwrap();
    let defaults = AdamSettings::default();
    let cosine = |steps, to| Decay::Cosine { steps, to };
    let cases = [
        (AdamSettings { learning_rate: 0.0, ..defaults }, "learning_rate"),
        (AdamSettings { learning_rate: f32::NAN, ..defaults }, "learning_rate"),
        (AdamSettings { beta1: 1.0, ..defaults }, "beta1"),
        (AdamSettings { beta2: -0.1, ..defaults }, "beta2"),
        (AdamSettings { epsilon: 0.0, ..defaults }, "epsilon"),
        (AdamSettings { clip: Some(-1.0), ..defaults }, "clip"),
        (AdamSettings { decay: cosine(0, 0.0), ..defaults }, "decay.cosine.steps"),
        (AdamSettings { decay: cosine(1, -0.1), ..defaults }, "decay.cosine.to"),
        (AdamSettings { decay: cosine(1, f32::NAN), ..defaults }, "decay.cosine.to"),
    ];
    for (settings, name) in cases {
        match Adam::new(&parameters, settings).err() {
            Some(Error::Setting { setting, .. }) => assert_eq!(setting, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(Adam::new(&parameters, AdamSettings { clip: Some(1.0), ..defaults }).is_ok());
    let clamp = zeros(1, 1).clamp(1.0, 0.0).unwrap_err();
    assert_eq!(
        clamp.to_string(),
        "setting `clamp` must be a lower bound not above the upper, found [1, 0]"
    );
    assert!(zeros(1, 1).huber(-1.0).is_err());
    assert!(zeros(1, 1).huber(f32::NAN).is_err());
}

#[test]
fn settings_files_reject_unknown_keys_and_keep_defaults() {
    let mlp: MlpSettings = toml::from_str("hidden = [64, 64]\nactivation = \"silu\"").unwrap();
    let expected =
        MlpSettings { hidden: vec![64, 64], activation: Activation::Silu, ..Default::default() };
    assert_eq!(mlp, expected);
    assert_eq!(
        toml::from_str::<MlpSettings>(&toml::to_string(&expected).unwrap()).unwrap(),
        expected
    );
    let adam: AdamSettings = toml::from_str("learning_rate = 0.5").unwrap();
    assert_eq!(adam, AdamSettings { learning_rate: 0.5, ..Default::default() });
    let unknown = toml::from_str::<AdamSettings>("learning_rat = 0.5").unwrap_err().to_string();
    assert!(unknown.contains("learning_rat"), "{unknown}");
    assert!(toml::from_str::<MlpSettings>("layers = 3").is_err());
    assert!(toml::from_str::<MlpSettings>("activation = \"sigmoid\"").is_err());
}

#[test]
fn names_are_unique() {
    let mut parameters = Parameters::new(&DfdxBackend::new(0));
    let settings = MlpSettings { hidden: vec![4], ..Default::default() };
    Mlp::new(&mut parameters, "net", 2, &settings, 1).unwrap();
    let twice = Mlp::new(&mut parameters, "net", 2, &settings, 1).err().unwrap();
    assert_eq!(twice.to_string(), "there is already a parameter named `net/linear_0/w`");
}
