//! Values and gradients made by torchqmet's IQE.
//!
//! Reads every `torchqmet_iqe_*.safetensors` in the directory named by `CM_FIXTURES`, or the copies
//! in `tests/fixtures`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cm_quasimetric::{Head, Reduction, Rows};
use safetensors::SafeTensors;

#[test]
fn torchqmet_iqe() {
    let files = fixtures("torchqmet_iqe_");
    assert!(!files.is_empty(), "no torchqmet_iqe_*.safetensors in CM_FIXTURES");
    for file in files {
        check(&file);
    }
}

fn check(file: &Path) {
    let name = file.display();
    let bytes = std::fs::read(file).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let metadata: HashMap<String, String> = header.metadata().clone().unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let (x, x_shape) = tensor(&tensors, "x");
    let (y, y_shape) = tensor(&tensors, "y");
    let (expected, _) = tensor(&tensors, "d");
    let (grad_d, _) = tensor(&tensors, "grad_d");

    let reduction = match metadata["reduction"].as_str() {
        "sum" => Reduction::Sum,
        "max" => Reduction::Max,
        "mean" => Reduction::Mean,
        "maxmean" => {
            let (raw, _) = tensor(&tensors, "param/reduction.raw_alpha");
            Reduction::MaxMean { logit: f64::from(raw[0]) }
        }
        other => panic!("{name}: unknown reduction {other}"),
    };
    let size: usize = metadata["dim_per_component"].parse().unwrap();
    let head = Head::Iqe { groups: x_shape[1] / size, reduction };
    let x = Rows::new(&x, x_shape[0], x_shape[1]).unwrap();
    let y = Rows::new(&y, y_shape[0], y_shape[1]).unwrap();

    let mut distances = vec![0.0; expected.len()];
    head.pairwise(x, y, &mut distances).unwrap();
    assert_close(&distances, &expected, &format!("{name}: d"));

    let mut grad_x = vec![0.0; x_shape[0] * x_shape[1]];
    let mut grad_y = vec![0.0; y_shape[0] * y_shape[1]];
    let logit = head.pairwise_backward(x, y, &grad_d, &mut grad_x, &mut grad_y).unwrap();
    assert_close(&grad_x, &tensor(&tensors, "grad_x").0, &format!("{name}: grad_x"));
    assert_close(&grad_y, &tensor(&tensors, "grad_y").0, &format!("{name}: grad_y"));
    if let Reduction::MaxMean { .. } = reduction {
        let (expected, _) = tensor(&tensors, "grad/reduction.raw_alpha");
        assert_close(&[logit], &expected, &format!("{name}: grad of raw_alpha"));
    }
}

fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= 2e-5 * (1.0 + expected.abs()),
            "{what} {k}: {found} {expected}"
        );
    }
}

fn tensor(tensors: &SafeTensors<'_>, name: &str) -> (Vec<f32>, Vec<usize>) {
    let view = tensors.tensor(name).unwrap();
    let (numbers, rest) = view.data().as_chunks::<4>();
    assert!(rest.is_empty());
    (numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(), view.shape().to_vec())
}

fn fixtures(prefix: &str) -> Vec<PathBuf> {
    let copy = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let directory = std::env::var_os("CM_FIXTURES").map_or(copy, PathBuf::from);
    let entries = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(prefix) && name.ends_with(".safetensors")
        })
        .collect();
    files.sort();
    files
}
