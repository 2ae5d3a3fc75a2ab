//! Values of an axis, and how they are named.

use anyhow::bail;
use toml::{Table, Value};

/// The keys of a table of keys: `goals.gamma = 1` and `"goals.gamma" = 1` are the same. What stands
/// under a quoted key with a dot, and a range, is a value as it is.
pub(super) fn flatten(table: Table) -> Vec<(String, Value)> {
    let mut keys = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !key.contains('.') && !is_range(&inner) => {
                let inner = flatten(inner).into_iter();
                keys.extend(inner.map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => keys.push((key, value)),
        }
    }
    keys
}

fn is_range(table: &Table) -> bool {
    table.contains_key("from") && table.contains_key("count")
}

/// The values of an axis: a list, or `{ from = 0, count = 8 }` (whole numbers counted up), or
/// `{ from = 0.1, to = 0.9, count = 5 }` (evenly spaced; `spacing = "log"` for equal ratios).
pub(super) fn values(value: Value) -> anyhow::Result<Vec<Value>> {
    match value {
        Value::Array(values) if values.is_empty() => bail!("expected at least one value, found []"),
        Value::Array(values) => Ok(values),
        Value::Table(range) if is_range(&range) => expand(&range),
        other => bail!("expected a list or {{ from, count }}, found {other}"),
    }
}

fn expand(range: &Table) -> anyhow::Result<Vec<Value>> {
    let known = ["from", "to", "count", "spacing"];
    if let Some(key) = range.keys().find(|key| !known.contains(&key.as_str())) {
        bail!("{key}: expected one of {}", known.join(", "));
    }
    let count = match range["count"].as_integer() {
        Some(count @ 1..=100_000) => count,
        _ => bail!("count: expected a whole number from 1 to 100000, found {}", range["count"]),
    };
    let log = match range.get("spacing").map(|spacing| spacing.as_str()) {
        None | Some(Some("even")) => false,
        Some(Some("log")) => true,
        _ => bail!("spacing: expected \"even\" or \"log\", found {}", range["spacing"]),
    };
    match (range["from"].as_integer(), range.get("to")) {
        (Some(from), None) if !log => match from.checked_add(count) {
            Some(end) => Ok((from..end).map(Value::Integer).collect()),
            None => bail!("from: expected a smaller number, found {from}"),
        },
        (_, None) => bail!("to: expected a number, since `from` is not counted up by ones"),
        (_, Some(to)) => spaced(number(&range["from"])?, number(to)?, count, log),
    }
}

fn number(value: &Value) -> anyhow::Result<f64> {
    let found = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    match found.filter(|number| number.is_finite()) {
        Some(number) => Ok(number),
        None => bail!("expected a finite number, found {value}"),
    }
}

fn spaced(from: f64, to: f64, count: i64, log: bool) -> anyhow::Result<Vec<Value>> {
    if log && !(from > 0.0 && to > 0.0) {
        bail!("spacing: expected positive numbers for \"log\", found {from} and {to}");
    }
    let share = |index: i64| index as f64 / (count - 1).max(1) as f64;
    let at = |index: i64| match (index, log) {
        (0, _) => from,
        (index, _) if index == count - 1 => to,
        (index, true) => from * (to / from).powf(share(index)),
        (index, false) => from + (to - from) * share(index),
    };
    // Numbers as somebody would write them, not 0.30000000000000004.
    let short = |number: f64| format!("{number:.12e}").parse().unwrap_or(number);
    Ok((0..count).map(|index| Value::Float(short(at(index)))).collect())
}

/// A value in the name of a run: letters, digits and a few signs, so that it can be a folder.
pub(super) fn label(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(label).collect::<Vec<_>>().join("x"),
        Value::Table(table) => {
            let keys = flatten(table.clone());
            let keys = keys.iter().map(|(key, value)| format!("{key}={}", label(value)));
            keys.collect::<Vec<_>>().join("+")
        }
        other => other.to_string(),
    };
    let allowed = |sign: char| sign.is_ascii_alphanumeric() || "._=+-".contains(sign);
    text.chars().map(|sign| if allowed(sign) { sign } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn keys_are_the_same_quoted_or_not() {
        let a = flatten(parse("[goals]\ngamma = 1\n[x]\ny = { from = 0, count = 2 }"));
        let b = flatten(parse("\"goals.gamma\" = 1\n\"x.y\" = { from = 0, count = 2 }"));
        assert_eq!(a, b);
        let head = flatten(parse("\"method.qrl.head\" = { mrn = { components = 2 } }"));
        assert!(head[0].0 == "method.qrl.head" && head[0].1.is_table());
    }

    #[test]
    fn ranges_are_counted_or_spaced() {
        let of = |text: &str| {
            let found = values(parse(&format!("x = {text}"))["x"].clone());
            found.map(|values| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(of("{ from = 3, count = 3 }").unwrap(), "3 4 5");
        assert_eq!(of("{ from = 0.1, to = 0.3, count = 3 }").unwrap(), "0.1 0.2 0.3");
        let log = of("{ from = 1e-4, to = 1e-2, count = 3, spacing = \"log\" }").unwrap();
        assert_eq!(log, "0.0001 0.001 0.01");
        assert_eq!(of("[true, \"a\"]").unwrap(), "true \"a\"");
        for (bad, part) in [
            ("[]", "at least one"),
            ("3", "a list"),
            ("{ from = 0.5, count = 3 }", "to: expected"),
            ("{ from = 0, count = 0 }", "count: expected"),
            ("{ from = 0, count = 2, by = 3 }", "by: expected"),
            ("{ from = 9223372036854775807, count = 2 }", "smaller"),
            ("{ from = 0, to = 1, count = 2, spacing = \"log\" }", "positive"),
            ("{ from = 0, to = nan, count = 2 }", "finite"),
        ] {
            let message = of(bad).unwrap_err().to_string();
            assert!(message.contains(part), "{bad}: {message}");
        }
    }

    #[test]
    fn labels_can_be_folders() {
        let table = parse("a = [512, 512]\nb = \"../x y\"\nc = 0.5\nd = { mrn = { n = 2 } }");
        assert_eq!(
            ["a", "b", "c", "d"].map(|key| label(&table[key])).join(" "),
            "512x512 .._x_y 0.5 mrn.n=2"
        );
    }
}
