//! Plans that travel with the command: the paper's experiments, readable and trainable by name.

use std::fmt::Write;

use anyhow::bail;

/// Names and texts of the files in `plans/`, in the order of their names.
const SHIPPED: [(&str, &str); 3] = [
    ("antmaze", include_str!("../../../plans/antmaze.toml")),
    ("ogbench", include_str!("../../../plans/ogbench.toml")),
    ("pointmaze", include_str!("../../../plans/pointmaze.toml")),
];

/// The text of a plan that is shipped.
pub(super) fn text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}

/// The names of all, as messages list them.
pub(super) fn names() -> String {
    SHIPPED.map(|(name, _)| name).join(", ")
}

/// Prints one plan as it is written, or the names of all with what they say of themselves.
pub(super) fn print(name: Option<&str>) -> anyhow::Result<()> {
    match name {
        None => print!("{}", list()),
        Some(name) => match text(name) {
            Some(text) => print!("{text}"),
            None => bail!("expected the name of a plan ({}), found `{name}`", names()),
        },
    }
    Ok(())
}

fn list() -> String {
    let width = SHIPPED.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut lines = String::new();
    for (name, text) in SHIPPED {
        let about = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        let _ = writeln!(lines, "{name:width$}  {about}");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_shipped_and_says_what_it_is() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let mut files = files.collect::<Vec<_>>();
        files.sort();
        let read = |file: &std::path::PathBuf| {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(file).unwrap())
        };
        let found = files.iter().map(read).collect::<Vec<_>>();
        let shipped = SHIPPED.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(found, shipped);
        assert!(shipped.iter().all(|(_, text)| text.starts_with("# ")));
        assert_eq!(list().lines().count(), SHIPPED.len());
    }
}
