//! `docs/architecture.md` draws the crates and their dependencies as `cargo metadata` has them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates, and those that each depends on.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// What `cargo metadata` says of each member of the workspace.
fn members() -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name(value: &serde_json::Value) -> String {
    value["name"].as_str().unwrap().to_owned()
}

/// Dependencies among the crates that are published; those of tests alone do not count.
fn dependencies() -> Graph {
    let mut packages = members();
    packages.retain(|package| package["publish"].is_null());
    let names: BTreeSet<String> = packages.iter().map(name).collect();
    let uses = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        let normal = all.filter(|dependency| dependency["kind"].is_null()).map(name);
        normal.filter(|name| names.contains(name)).collect()
    };
    packages.iter().map(|package| (name(package), uses(package))).collect()
}

/// Everything that a crate depends on, directly or not.
fn reach(graph: &Graph, name: &str) -> BTreeSet<String> {
    let further = graph[name].iter().flat_map(|used| reach(graph, used));
    graph[name].iter().cloned().chain(further).collect()
}

/// The arrows that say all the others: a crate is left out where one that is drawn depends on it.
fn drawn(graph: &Graph) -> Graph {
    let needed = |uses: &BTreeSet<String>| {
        let implied: BTreeSet<String> = uses.iter().flat_map(|used| reach(graph, used)).collect();
        uses.difference(&implied).cloned().collect()
    };
    graph.iter().map(|(name, uses)| (name.clone(), needed(uses))).collect()
}

/// The lines `a --> b & c` of the drawing.
fn parse(text: &str) -> Graph {
    let (_, block) = text.split_once("```mermaid\n").expect("a drawing");
    let (block, _) = block.split_once("```").unwrap();
    let mut graph = Graph::new();
    for (name, uses) in block.lines().filter_map(|line| line.split_once("-->")) {
        let uses = uses.split('&').map(|used| used.trim().to_owned());
        let twice = graph.insert(name.trim().to_owned(), uses.collect());
        assert!(twice.is_none(), "two lines for {name}");
    }
    graph
}

/// The drawing as it should be, those that depend on most first.
fn draw(graph: &Graph, whole: &Graph) -> String {
    let mut names: Vec<&String> = graph.keys().collect();
    names.sort_by_key(|name| (std::cmp::Reverse(reach(whole, name).len()), *name));
    let line = |name: &&String| {
        let uses: Vec<&str> = graph[*name].iter().map(String::as_str).collect();
        format!("    {name} --> {}\n", uses.join(" & "))
    };
    names.iter().map(line).collect()
}

#[test]
fn the_drawing_is_what_cargo_says() {
    let text = std::fs::read_to_string(workspace().join("docs/architecture.md")).unwrap();
    let whole = dependencies();
    let mut expected = drawn(&whole);
    // Who is only depended on has no line of its own.
    expected.retain(|_, uses| !uses.is_empty());
    assert!(
        parse(&text) == expected,
        "the drawing in docs/architecture.md should have these lines:\n{}",
        draw(&expected, &whole)
    );
}

#[test]
fn the_table_has_a_row_for_every_member() {
    let text = std::fs::read_to_string(workspace().join("docs/architecture.md")).unwrap();
    let (_, table) = text.split_once("| crate | holds").expect("a table of crates");
    let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| "));
    let rows: BTreeSet<&str> = rows.filter_map(|row| row.split(' ').next()).collect();
    let members: BTreeSet<String> = members().iter().map(name).collect();
    let members: BTreeSet<&str> = members.iter().map(String::as_str).collect();
    assert_eq!(
        rows, members,
        "rows of the table in docs/architecture.md, members of the workspace"
    );
}
