//! Parameters to and from files: exact, complete or not at all.

use cm_nn::{DfdxBackend, Error, Initialiser, Matrix, Parameters, Snapshot};
use proptest::prelude::*;

fn parameters() -> Parameters<DfdxBackend> {
    let mut parameters = Parameters::new(&DfdxBackend::new(3));
    parameters.create("a/w", [3, 4], Initialiser::LECUN_NORMAL).unwrap();
    parameters.create("a/b", [1, 4], Initialiser::LECUN_UNIFORM).unwrap();
    parameters
}

fn snapshot(entries: &[(&str, [usize; 2], &[f32])]) -> Snapshot {
    let entries = entries.iter().map(|&(name, shape, values)| {
        (name.to_string(), Matrix { shape, values: values.to_vec() })
    });
    entries.collect()
}

#[test]
fn files_give_back_what_was_saved() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let source = parameters();
    source.snapshot(0).unwrap().save_safetensors(&path).unwrap();
    let target = parameters();
    for parameter in &target {
        parameter.set(&vec![0.0; parameter.shape()[0] * parameter.shape()[1]]).unwrap();
    }
    target.restore(0, &Snapshot::load_safetensors(&path).unwrap()).unwrap();
    assert_eq!(target.snapshot(0).unwrap(), source.snapshot(0).unwrap());
    // Saving again replaces the file and leaves nothing else behind.
    target.snapshot(0).unwrap().save_safetensors(&path).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn files_are_readable_by_other_tools() {
    let bytes = snapshot(&[("w", [2, 2], &[1.0, 2.0, 3.0, 4.0])]).to_safetensors().unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let view = file.tensor("w").unwrap();
    assert_eq!((view.dtype(), view.shape()), (safetensors::Dtype::F32, &[2, 2][..]));
    assert_eq!(view.data()[4..8], 2.0_f32.to_le_bytes());
}

#[test]
fn vectors_and_scalars_become_matrices() {
    let data = [1.0_f32, 2.0].map(f32::to_le_bytes).concat();
    let view = |shape: Vec<usize>, bytes| {
        safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape, bytes).unwrap()
    };
    let views = [("vector", view(vec![2], &data)), ("scalar", view(vec![], &data[..4]))];
    let read = Snapshot::from_safetensors(&safetensors::serialize(views, None).unwrap()).unwrap();
    assert_eq!(read.get("vector").unwrap().shape, [1, 2]);
    assert_eq!(read.get("scalar").unwrap(), &Matrix { shape: [1, 1], values: vec![1.0] });

    let deep = safetensors::serialize([("deep", view(vec![2, 1, 1], &data))], None).unwrap();
    let message = Snapshot::from_safetensors(&deep).unwrap_err().to_string();
    assert_eq!(message, "safetensors: tensor `deep` must be a matrix, found [2, 1, 1]");
    let view =
        safetensors::tensor::TensorView::new(safetensors::Dtype::F64, vec![1], &data).unwrap();
    let double = safetensors::serialize([("double", view)], None).unwrap();
    let message = Snapshot::from_safetensors(&double).unwrap_err().to_string();
    assert_eq!(message, "safetensors: tensor `double` must be F32, found F64");
}

#[test]
fn broken_files_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let missing = Snapshot::load_safetensors(&path).unwrap_err();
    assert!(
        matches!(missing, Error::File { .. }) && missing.to_string().contains("model.safetensors")
    );
    let whole = parameters().snapshot(0).unwrap().to_safetensors().unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = Snapshot::load_safetensors(&path).unwrap_err();
        assert!(matches!(error, Error::Content { .. }), "{length} bytes: {error}");
        assert!(error.to_string().contains("model.safetensors"));
    }
    let nowhere = directory.path().join("none/model.safetensors");
    let error = parameters().snapshot(0).unwrap().save_safetensors(&nowhere).unwrap_err();
    assert!(matches!(error, Error::Write(_)), "{error}");
}

#[test]
fn truncated_bincode_is_refused() {
    let config = bincode::config::standard();
    let whole = bincode::encode_to_vec(parameters().snapshot(0).unwrap(), config).unwrap();
    for length in 0..whole.len() {
        let decoded = bincode::decode_from_slice::<Snapshot, _>(&whole[..length], config);
        assert!(decoded.is_err(), "{length} bytes");
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let parameters = parameters();
    let before = parameters.snapshot(0).unwrap();
    let (w, b) = ([0.5; 12], [0.5; 4]);
    let fine: (&str, [usize; 2], &[f32]) = ("a/b", [1, 4], &b);
    let mut bad = w;
    bad[6] = f32::NAN;
    let cases = [
        (snapshot(&[fine]), "parameter `a/w` is missing from the snapshot"),
        (
            snapshot(&[fine, ("a/w", [4, 3], &w)]),
            "parameter `a/w` is [3, 4], but what should fill it is [4, 3]",
        ),
        (
            snapshot(&[fine, ("a/w", [3, 4], &w), ("c", [1, 1], &[1.0])]),
            "the snapshot holds `c`, which is not a parameter here",
        ),
        (
            snapshot(&[fine, ("a/w", [3, 4], &bad)]),
            "parameter `a/w`: value NaN at row 1, column 2 is not finite",
        ),
        (
            snapshot(&[fine, ("a/w", [3, 4], &w[..11])]),
            "restore: expected 12 values for [3, 4], found 11",
        ),
    ];
    for (snapshot, message) in cases {
        assert_eq!(parameters.restore(0, &snapshot).unwrap_err().to_string(), message);
        assert_eq!(parameters.snapshot(0).unwrap(), before);
    }
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let matrix = (1_usize..5, 1_usize..5).prop_flat_map(|(rows, columns)| {
        let values = prop::collection::vec(any::<u32>().prop_map(f32::from_bits), rows * columns);
        values.prop_map(move |values| Matrix { shape: [rows, columns], values })
    });
    prop::collection::vec(("[a-z/_0-9]{1,12}", matrix), 0..6)
        .prop_map(|entries| entries.into_iter().collect())
}

/// Equality of bits, since a NaN is not equal to itself.
fn bits(snapshot: &Snapshot) -> Vec<(String, [usize; 2], Vec<u32>)> {
    let entry = |(name, matrix): (&str, &Matrix)| {
        let bits = matrix.values.iter().map(|value| value.to_bits()).collect();
        (name.to_string(), matrix.shape, bits)
    };
    snapshot.iter().map(entry).collect()
}

proptest! {
    #[test]
    fn every_bit_survives(snapshot in any_snapshot()) {
        let bytes = snapshot.to_safetensors().unwrap();
        prop_assert_eq!(bits(&Snapshot::from_safetensors(&bytes).unwrap()), bits(&snapshot));
        let config = bincode::config::standard();
        let bytes = bincode::encode_to_vec(&snapshot, config).unwrap();
        let (back, _) = bincode::decode_from_slice::<Snapshot, _>(&bytes, config).unwrap();
        prop_assert_eq!(bits(&back), bits(&snapshot));
    }

    #[test]
    fn damaged_files_never_panic(
        snapshot in any_snapshot(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = snapshot.to_safetensors().unwrap();
        for (place, byte) in damage {
            let index = place.index(bytes.len());
            bytes[index] = byte;
        }
        let _ = Snapshot::from_safetensors(&bytes);
    }
}
