//! Numbers along an axis.

use plotters::prelude::*;
use plotters::style::TextStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// What text is drawn with: black, `size` pixels high, its place given by the corner or side named.
pub fn text(size: i32, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&BLACK).pos(Pos::new(horizontal, vertical))
}

/// Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, about `count` of them.
///
/// ```
/// assert_eq!(cm_draw::ticks(-1.0, 9.0, 5.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
/// assert_eq!(cm_draw::ticks(3.0, 3.0, 5.0), [3.0]); // there is no range to divide
/// ```
pub fn ticks(low: f64, high: f64, count: f64) -> Vec<f64> {
    let rough = (high - low) / count;
    if !(rough > 0.0 && rough.is_finite()) {
        return vec![low];
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    (first..)
        .map(|index| index as f64 * step)
        .take_while(|tick| *tick <= high + 1e-9 * step)
        .collect()
}

/// A number without the digits that rounding leaves.
///
/// ```
/// let numbers = [0.1 + 0.2, 1500.0, 25_000.0, 1_234_567.0];
/// assert_eq!(numbers.map(cm_draw::label), ["0.3", "1500", "25k", "1.23M"]);
/// ```
pub fn label(number: f64) -> String {
    let size = number.abs();
    if size >= 1e6 {
        format!("{}M", (number / 1e6 * 100.0).round() / 100.0)
    } else if size >= 10_000.0 {
        format!("{}k", (number / 1e3 * 10.0).round() / 10.0)
    } else {
        format!("{}", (number * 1e4).round() / 1e4)
    }
}
