//! Distances in words.

use cm_train::{Model, ReadOut, RoadMap, Trust};
use serde_json::{Value, json};

/// `2.3141 nats, about 14 steps (9 to 22)`.
pub(crate) fn in_words(model: &Model, distance: f32) -> String {
    if distance.is_infinite() {
        return "no way in the data".to_owned();
    }
    let Some(calibration) = model.calibration() else { return format!("{distance:.4}") };
    match calibration.steps(distance) {
        Some(steps) => format!("{distance:.4} nats, {steps}"),
        None => format!("{distance:.4} nats, more than {:.0} steps", calibration.most()),
    }
}

/// The steps of a distance, or null.
pub(crate) fn in_json(model: &Model, distance: f32) -> Value {
    match model.steps(distance) {
        Some(steps) => json!({ "about": steps.about, "low": steps.low, "high": steps.high }),
        None => Value::Null,
    }
}

/// How far a road map's distance is trusted, such as `map: 200 trajectories held out, ...`.
pub(crate) fn map_in_words(map: &RoadMap) -> Option<String> {
    map.trust().map(|trust| format!("map: {trust}"))
}

/// What [`map_in_words`] says, as numbers.
pub(crate) fn trust_in_json(trust: &Trust) -> Value {
    let steps = |distance| {
        let steps = trust.steps(distance);
        steps.map(|steps| json!({ "about": steps.about, "low": steps.low, "high": steps.high }))
    };
    json!({
        "trajectories": trust.trajectories,
        "pairs": trust.pairs,
        "unseen": trust.unseen,
        "correlation": trust.correlation,
        "wanted": trust.wanted,
        "link_steps": steps(trust.link),
        "reach_steps": steps(trust.reach),
    })
}

/// What must be said beside every distance; nothing if there is nothing to be warned of.
pub(crate) fn warning(model: &Model) -> Option<String> {
    let often = || match model.violations() {
        Some(share) => format!("{:.1} % of triples violated it", 100.0 * share),
        None => "how often was not measured".to_owned(),
    };
    match model.read_out() {
        _ if !model.has_distance() => None,
        _ if !model.is_quasimetric() => Some(format!(
            "note: this is no quasimetric, the triangle inequality may fail; {}",
            often()
        )),
        ReadOut::States if model.settings().read_out == ReadOut::Composed => Some(
            "note: not composed over the data: training has not ended, or its trajectories hardly \
             meet"
                .to_owned(),
        ),
        _ => None,
    }
}
