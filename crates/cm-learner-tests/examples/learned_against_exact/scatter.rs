//! Scatter plots as one SVG: a row for each process, a column for each method.

use std::fmt::Write;

use cm_learner_tests::study::{Method, Outcome};

/// Pixels of a panel's side and of the space around it.
const SIDE: f64 = 240.0;
const SPACE: f64 = 56.0;

/// The picture. Areas of points grow with how often a pair is drawn; the line is where learned and
/// exact distances are equal.
pub(crate) fn svg(rows: &[(&str, Vec<Outcome>)]) -> String {
    let cell = SIDE + SPACE;
    let width = SPACE + Method::ALL.len() as f64 * cell;
    let height = SPACE + rows.len() as f64 * cell;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (row, (name, outcomes)) in rows.iter().enumerate() {
        for (column, (method, outcome)) in Method::ALL.iter().zip(outcomes).enumerate() {
            let (x, y) = (SPACE + column as f64 * cell, SPACE + row as f64 * cell);
            let rank = outcome.rank_correlation();
            let title = format!("{name}, {}: rank {rank:.3}", title(*method));
            panel(&mut svg, (x, y), &title, outcome);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// As a method is called in the picture and in the table.
pub(super) fn title(method: Method) -> &'static str {
    match method {
        Method::Cmd1 => "CMD-1",
        Method::Cmd2 => "CMD-2",
        Method::RawCritic => "minus CRL's critic",
    }
}

fn panel(svg: &mut String, (x, y): (f64, f64), title: &str, outcome: &Outcome) {
    let learned = || outcome.points.iter().map(|point| point.learned);
    let exact = outcome.points.iter().map(|point| point.exact);
    let low = learned().fold(0.0, f64::min);
    let high = exact.chain(learned()).fold(1.0, f64::max);
    let scale = SIDE / (high - low);
    let place =
        |exact: f64, learned: f64| (x + (exact - low) * scale, y + SIDE - (learned - low) * scale);
    let (from, to) = (place(low, low), place(high, high));
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{:.1}\">{title}</text>\n\
         <rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#888\"/>\n\
         <path d=\"M{:.1} {:.1} L{:.1} {:.1}\" stroke=\"#c33\"/>\n\
         <text x=\"{x}\" y=\"{:.1}\">exact, {low:.1} to {high:.1}</text>\n\
         <text transform=\"translate({:.1} {:.1}) rotate(-90)\">learned</text>",
        y - 6.0,
        from.0,
        from.1,
        to.0,
        to.1,
        y + SIDE + 16.0,
        x - 6.0,
        y + SIDE,
    );
    let most = outcome.points.iter().map(|point| point.share).fold(0.0, f64::max);
    for point in &outcome.points {
        let (cx, cy) = place(point.exact, point.learned);
        let radius = 1.5 + 4.0 * (point.share / most).sqrt();
        let _ = writeln!(
            svg,
            "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"{radius:.1}\" fill=\"#25a\" fill-opacity=\"0.35\"/>"
        );
    }
}
