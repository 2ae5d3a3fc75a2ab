//! Everything of a learner that changes in training, as one snapshot.

use cm_nn::{Adam, Backend, Parameters, Result, Snapshot};

/// Something with values to keep.
pub(crate) enum Part<'a, B: Backend> {
    Parameters(&'a Parameters<B>),
    Adam(&'a Adam<B>),
}

impl<B: Backend> Part<'_, B> {
    fn snapshot(&self) -> Result<Snapshot> {
        match self {
            Self::Parameters(parameters) => parameters.snapshot(),
            Self::Adam(adam) => adam.snapshot(),
        }
    }

    fn restore(&self, snapshot: &Snapshot) -> Result<()> {
        match self {
            Self::Parameters(parameters) => parameters.restore(snapshot),
            Self::Adam(adam) => adam.restore(snapshot),
        }
    }
}

/// The values of all parts, each under its prefix. No prefix may begin another.
pub(crate) fn snapshot<B: Backend>(parts: &[(&str, Part<'_, B>)]) -> Result<Snapshot> {
    let mut all = Snapshot::default();
    for (prefix, part) in parts {
        all.extend(part.snapshot()?.prefixed(prefix));
    }
    Ok(all)
}

/// Overwrites all parts, or changes nothing if the snapshot does not fit.
pub(crate) fn restore<B: Backend>(
    parts: &[(&str, Part<'_, B>)],
    snapshot: &Snapshot,
) -> Result<()> {
    let known = |name: &str| parts.iter().any(|(prefix, _)| name.starts_with(prefix));
    if let Some((name, _)) = snapshot.iter().find(|(name, _)| !known(name)) {
        return Err(cm_nn::Error::UnknownParameter(name.to_string()));
    }
    let mut before = Vec::with_capacity(parts.len());
    for (prefix, part) in parts {
        before.push((part, part.snapshot()?));
        if let Err(error) = part.restore(&snapshot.under(prefix)) {
            for (part, old) in &before {
                part.restore(old)?;
            }
            return Err(error);
        }
    }
    Ok(())
}
