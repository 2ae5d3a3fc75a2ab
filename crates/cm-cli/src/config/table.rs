//! Settings as TOML tables: laid over each other, changed by dotted keys, read.

use anyhow::{anyhow, bail};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// `over` laid over `preset`, key by key.
///
/// A setting that is one of several choices is a table with one key, the choice. Where `preset` and
/// `over` have one key each and not the same, `over` replaces a choice by another, unless the two
/// together are `accepted` in the preset's place: then they are two settings of one table.
pub(super) fn merge(preset: &Table, over: Table, accepted: &dyn Fn(Table) -> bool) -> Table {
    let mut merged = preset.clone();
    if preset.len() == 1 && over.len() == 1 && preset.keys().ne(over.keys()) {
        merged.extend(over.clone());
        return if accepted(merged.clone()) { merged } else { over };
    }
    for (key, value) in over {
        let value = match (preset.get(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => {
                let inner = |table: Table| {
                    let mut outer = preset.clone();
                    outer.insert(key.clone(), Value::Table(table));
                    accepted(outer)
                };
                Value::Table(merge(below, above, &inner))
            }
            (_, value) => value,
        };
        merged.insert(key, value);
    }
    merged
}

/// Settings that are absent from files where they are switched off; others are `"none"` there.
const ABSENT: [&str; 4] = ["goals.actor", "plan", "plan.link", "plan.reach"];

/// Sets what a dotted key names. Every key but the last must exist, so that a misspelt one is
/// noticed.
pub(super) fn set(table: &mut Table, key: &str, value: Value) -> anyhow::Result<()> {
    let (path, last) = key.rsplit_once('.').map_or((None, key), |(path, last)| (Some(path), last));
    let mut at = table;
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        let known: Vec<_> = at.keys().cloned().collect();
        at = match at.get_mut(part) {
            Some(Value::Table(inner)) => inner,
            _ => bail!("{key}: expected one of {} in the place of `{part}`", known.join(", ")),
        };
    }
    if ABSENT.contains(&key) && value.as_str() == Some("none") {
        at.remove(last);
        return Ok(());
    }
    let value = match (at.get(last), value) {
        (Some(Value::Float(_)), Value::Integer(whole)) => Value::Float(whole as f64),
        (_, value) => value,
    };
    at.insert(last.to_owned(), value);
    Ok(())
}

/// `KEY=VALUE` of a flag, taken apart.
pub(super) fn parse_pair<'a>(flag: &str, text: &'a str) -> anyhow::Result<(&'a str, &'a str)> {
    let Some((key, value)) = text.split_once('=') else {
        bail!("{flag}: expected KEY=VALUE, found `{text}`");
    };
    Ok((key.trim(), value.trim()))
}

/// TOML if it is, else a string, so that names need no quotes.
pub(super) fn parse_value(text: &str) -> Value {
    let parsed = toml::from_str::<Table>(&format!("value = {text}"));
    parsed
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Errors name the table and the key. The line that TOML's own would name is that of the preset and
/// the file together, which nobody has seen.
pub(super) fn parse<T: DeserializeOwned>(table: &Table) -> anyhow::Result<T> {
    let text = toml::to_string(table)?;
    toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        let mut lines = text[..end].lines().rev();
        let line = lines.next().unwrap_or_default();
        let header = lines.find(|line| line.starts_with('[')).filter(|_| !line.starts_with('['));
        let place = header.into_iter().chain([line]).collect::<Vec<_>>().join(" ");
        let without_settings = ["newtype", "struct"]
            .map(|kind| format!("invalid type: unit variant, expected {kind} variant"));
        match error.message() {
            message if without_settings.iter().any(|text| text == message) => {
                anyhow!("{place}: expected a table of this choice's settings, found its name alone")
            }
            message => anyhow!("{place}: {message}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_one_key_are_joined_if_both_keys_belong_there() {
        let table = |text: &str| toml::from_str::<Table>(text).unwrap();
        let preset = table("x = 1\n[inner]\na = 1");
        let over = || table("[inner]\nb = 2");
        let both = merge(&preset, over(), &|whole| whole["x"].as_integer() == Some(1));
        assert_eq!(both, table("x = 1\n[inner]\na = 1\nb = 2"));
        let one = |whole: Table| whole["inner"].as_table().is_some_and(|inner| inner.len() == 1);
        assert_eq!(merge(&preset, over(), &one), table("x = 1\n[inner]\nb = 2"));
    }
}
