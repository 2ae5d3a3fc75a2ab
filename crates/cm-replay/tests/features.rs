//! A file whose reader is switched off is refused with the name of the feature.
//!
//! `cargo test -p cm-replay --no-default-features --test features` refuses all three.

use cm_replay::{ReadOptions, read};

#[test]
fn a_reader_that_is_switched_off_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, feature, on) in [
        ("a.hdf5", "`hdf5`", cfg!(feature = "hdf5")),
        ("a.h5", "`hdf5`", cfg!(feature = "hdf5")),
        ("a.npz", "`npz`", cfg!(feature = "npz")),
        ("a.csv", "`csv`", cfg!(feature = "csv")),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, "not such a file").unwrap();
        let message = read(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
        assert_eq!(message.contains(&format!("without the feature {feature}")), !on, "{message}");
    }
}
