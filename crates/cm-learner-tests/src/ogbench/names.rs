//! What the reference learners call our parameters, and how theirs are laid out.

/// Where their value of one of our parameters is.
pub(super) struct Theirs {
    pub(super) name: String,
    /// Which network of an ensemble of two.
    pub(super) member: Option<usize>,
    /// Their sign against ours.
    sign: f32,
    /// The halves of every so many columns (rows) are the other way round: their MRN has its
    /// asymmetric half first, ours its Euclidean one.
    swapped: Option<(Axis, usize)>,
}

#[derive(Clone, Copy)]
enum Axis {
    Rows,
    Columns,
}

/// Names of networks: ours, theirs, and which of two.
type Networks = &'static [(&'static str, &'static str, Option<usize>)];

const POLICY: (&str, &str, Option<usize>) = ("policy", "modules_actor", None);

const CMD: Networks = &[
    POLICY,
    ("quasimetric/encoder", "modules_critic/phi", Some(0)),
    ("quasimetric_1/encoder", "modules_critic/phi", Some(1)),
];
const TMD: Networks = &[
    POLICY,
    ("phi_0", "modules_phi/phi", Some(0)),
    ("phi_1", "modules_phi/phi", Some(1)),
    ("psi_0", "modules_psi/phi", Some(0)),
    ("psi_1", "modules_psi/phi", Some(1)),
];
const CRL: Networks = &[
    POLICY,
    ("contrastive/sa_encoder", "modules_critic/phi", Some(0)),
    ("contrastive/g_encoder", "modules_critic/psi", Some(0)),
    ("contrastive_1/sa_encoder", "modules_critic/phi", Some(1)),
    ("contrastive_1/g_encoder", "modules_critic/psi", Some(1)),
    ("value/sa_encoder", "modules_value/phi", None),
    ("value/g_encoder", "modules_value/psi", None),
];
const QRL: Networks = &[
    POLICY,
    ("quasimetric/encoder", "modules_value/phi", None),
    ("transition", "modules_dynamics", None),
];
const GCIVL: Networks = &[
    POLICY,
    ("value_0", "modules_value/value_net", Some(0)),
    ("value_1", "modules_value/value_net", Some(1)),
    ("target_0", "modules_target_value/value_net", Some(0)),
    ("target_1", "modules_target_value/value_net", Some(1)),
];
const GCIQL: Networks = &[
    POLICY,
    ("value", "modules_value/value_net", None),
    ("critic_0", "modules_critic/value_net", Some(0)),
    ("critic_1", "modules_critic/value_net", Some(1)),
    ("target_0", "modules_target_critic/value_net", Some(0)),
    ("target_1", "modules_target_critic/value_net", Some(1)),
];
const HIQL: Networks = &[
    ("representation", "modules_goal_rep/layers_0", None),
    ("low", "modules_low_actor", None),
    ("high", "modules_high_actor", None),
    ("value_0", "modules_value/value_net", Some(0)),
    ("value_1", "modules_value/value_net", Some(1)),
    ("target_0", "modules_target_value/value_net", Some(0)),
    ("target_1", "modules_target_value/value_net", Some(1)),
];

fn networks(agent: &str) -> Networks {
    match agent {
        "cmd" => CMD,
        "tmd" => TMD,
        "crl" => CRL,
        "qrl" => QRL,
        "gcbc" => &[POLICY],
        "gcivl" => GCIVL,
        "gciql" => GCIQL,
        "hiql" => HIQL,
        other => panic!("unknown learner {other}"),
    }
}

impl Theirs {
    /// Their place for our parameter `ours`. `mrn` is the width of a component if they have MRNs,
    /// whose features come out of layer `last` of a network; `policy_sees_features` says whether
    /// the policy's first layer takes them in.
    pub(super) fn of(
        agent: &str,
        ours: &str,
        last: usize,
        mrn: Option<usize>,
        policy_sees_features: bool,
    ) -> Self {
        let alone =
            |name: &str, sign| Self { name: name.into(), member: None, sign, swapped: None };
        match ours {
            "dual" => return alone("modules_lam/log_value", 1.0),
            // Their weight is of the mean, ours of the maximum.
            "quasimetric/logit" => return alone("modules_value/alpha/value", -1.0),
            _ => {}
        }
        let found = networks(agent).iter().find_map(|&(our_network, theirs, member)| {
            Some((ours.strip_prefix(our_network)?.strip_prefix('/')?, theirs, member))
        });
        let (rest, network, member) = found.unwrap_or_else(|| panic!("{agent}: unknown {ours}"));
        let name = format!("{network}/{}", layer(rest));
        let encoder = member.is_some() && rest.starts_with(&format!("linear_{last}/"));
        let swapped = match mrn {
            Some(width) if encoder => Some((Axis::Columns, width)),
            Some(width) if policy_sees_features && rest == "mlp/linear_0/w" => {
                Some((Axis::Rows, width))
            }
            _ => None,
        };
        Self { name, member, sign: 1.0, swapped }
    }

    /// Their values in our order.
    pub(super) fn convert(&self, values: &[f32], columns: usize) -> Vec<f32> {
        let other = |index: usize, width: usize| {
            let (component, within) = (index / width, index % width);
            component * width + (within + width / 2) % width
        };
        let value = |at: usize| {
            let (row, column) = (at / columns, at % columns);
            let from = match self.swapped {
                None => at,
                Some((Axis::Columns, width)) => row * columns + other(column, width),
                Some((Axis::Rows, width)) => other(row, width) * columns + column,
            };
            self.sign * values[from]
        };
        (0..values.len()).map(value).collect()
    }
}

/// `linear_1/w` is `Dense_1/kernel`, and so on.
fn layer(ours: &str) -> String {
    let (place, kind) = ours.rsplit_once('/').unwrap_or(("", ours));
    let (net, place) = match place.strip_prefix("mlp/") {
        Some(place) => ("actor_net/", place),
        None => ("", place),
    };
    let place = place.replace("linear_", "Dense_").replace("norm_", "LayerNorm_");
    let place = if place == "mean" { "mean_net".to_owned() } else { place };
    let kind = match kind {
        "w" => "kernel",
        "gain" => "scale",
        _ => "bias",
    };
    format!("{net}{place}/{kind}")
}
