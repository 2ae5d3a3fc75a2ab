//! The promise of the README, part by part.

use std::io::ErrorKind;
use std::path::Path;

use cm_files::{Error, publish, replace, replace_with};
use tempfile::{TempDir, tempdir};

/// A folder with one file, `old`.
fn with_old() -> (TempDir, std::path::PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file.txt");
    std::fs::write(&path, "old").unwrap();
    (folder, path)
}

fn files(folder: &TempDir) -> usize {
    std::fs::read_dir(folder.path()).unwrap().count()
}

fn assert_old_and_alone(folder: &TempDir, path: &Path) {
    assert_eq!(std::fs::read_to_string(path).unwrap(), "old");
    assert_eq!(files(folder), 1);
}

#[test]
fn a_file_is_made_and_replaced_and_nothing_else_is_left() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file.txt");
    for content in ["a long first content", "short", ""] {
        replace(&path, content).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        assert_eq!(files(&folder), 1);
    }
}

#[test]
fn the_name_appears_only_with_the_whole_content() {
    let (folder, path) = with_old();
    replace_with(&path, |partial| {
        std::fs::write(partial, "half").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        std::fs::write(partial, "half and half").unwrap();
        Ok::<(), Error>(())
    })
    .unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "half and half");
    assert_eq!(files(&folder), 1);
}

#[test]
fn a_writer_that_fails_or_panics_leaves_the_old_file_alone() {
    let (folder, path) = with_old();
    let failed = replace_with(&path, |partial| {
        std::fs::write(partial, "half").unwrap();
        Err::<(), _>(Error { path: "elsewhere".into(), cause: ErrorKind::StorageFull.into() })
    });
    assert_eq!(failed.unwrap_err().path, Path::new("elsewhere"));
    assert_old_and_alone(&folder, &path);

    let panicked = std::panic::catch_unwind(|| {
        replace_with(&path, |partial| -> Result<(), Error> {
            std::fs::write(partial, "half").unwrap();
            panic!("as if")
        })
    });
    assert!(panicked.is_err());
    assert_old_and_alone(&folder, &path);
}

/// `/dev/full` answers every write as a full disk does.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_the_old_file_alone_and_is_named() {
    let (folder, path) = with_old();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("file.txt.partial")).unwrap();
    let error = replace(&path, "new").unwrap_err();
    assert_eq!((error.cause.kind(), &error.path), (ErrorKind::StorageFull, &path));
    assert_old_and_alone(&folder, &path);
    replace(&path, "new").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_partial_file_left_behind_is_no_hindrance() {
    let (folder, path) = with_old();
    std::fs::write(folder.path().join("file.txt.partial"), "half of a longer content").unwrap();
    replace(&path, "new").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(files(&folder), 1);
}

#[test]
fn errors_name_the_file() {
    let folder = tempdir().unwrap();
    let missing = folder.path().join("missing/file.txt");
    let error = replace(&missing, "new").unwrap_err();
    assert_eq!((error.cause.kind(), &error.path), (ErrorKind::NotFound, &missing));
    assert!(error.to_string().starts_with(&format!("could not write {}: ", missing.display())));
    assert_eq!(files(&folder), 0);

    let is_folder = folder.path().join("folder");
    std::fs::create_dir_all(is_folder.join("inner")).unwrap();
    assert_eq!(replace(&is_folder, "new").unwrap_err().path, is_folder);
    assert_eq!(files(&folder), 1);

    let nameless = replace("..", "new").unwrap_err();
    assert_eq!(nameless.to_string(), "could not write ..: expected the name of a file");
}

#[test]
fn what_could_not_be_published_stays() {
    let folder = tempdir().unwrap();
    let part = folder.path().join("data.part");
    std::fs::write(&part, "all").unwrap();
    let error = publish(&part, folder.path().join("missing/data")).unwrap_err();
    assert_eq!(error.cause.kind(), ErrorKind::NotFound);
    assert_eq!(std::fs::read_to_string(&part).unwrap(), "all");
    let error = publish(folder.path().join("nothing"), folder.path().join("data")).unwrap_err();
    assert_eq!(error.path, folder.path().join("data"));
    publish(&part, folder.path().join("data")).unwrap();
    assert_eq!(files(&folder), 1);
}
