//! Named matrices on the host: what is written to disk and read back.

use std::collections::BTreeMap;

use bincode::{Decode, Encode};

use crate::{Error, Result, Shape};

/// A matrix on the host.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Matrix {
    /// Rows and columns.
    pub shape: Shape,
    /// The values, row by row.
    pub values: Vec<f32>,
}

/// Named matrices on the host, ordered by name: parameters or an optimiser's state at one moment.
///
/// It goes to and from bincode as any other type that implements [`Encode`] and [`Decode`], so it
/// can be a field of a larger checkpoint, and to and from [safetensors](Self::to_safetensors).
///
/// ```
/// use cm_nn::{DfdxBackend, Initialiser, Parameters, Snapshot};
///
/// let mut parameters = Parameters::new(&DfdxBackend::new(7));
/// parameters.create("w", [2, 3], Initialiser::LECUN_UNIFORM)?;
/// let before = parameters.snapshot(0)?;
///
/// let config = bincode::config::standard();
/// let bytes = bincode::encode_to_vec(&before, config).unwrap();
/// let (after, _): (Snapshot, usize) = bincode::decode_from_slice(&bytes, config).unwrap();
/// assert_eq!(after, before);
/// parameters.restore(0, &after)?;
/// # Ok::<(), cm_nn::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Snapshot {
    matrices: BTreeMap<String, Matrix>,
}

impl Snapshot {
    /// The matrix of that name.
    pub fn get(&self, name: &str) -> Option<&Matrix> {
        self.matrices.get(name)
    }

    /// Names and matrices, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Matrix)> {
        self.matrices.iter().map(|(name, matrix)| (name.as_str(), matrix))
    }

    /// The matrices whose names start with `prefix`, without it.
    ///
    /// ```
    /// use cm_nn::{Matrix, Snapshot};
    ///
    /// let matrix = Matrix { shape: [1, 1], values: vec![2.0] };
    /// let snapshot: Snapshot = [("a/x".to_string(), matrix)].into_iter().collect();
    /// assert_eq!(snapshot.under("a/").get("x").unwrap().values, [2.0]);
    /// assert_eq!(snapshot.under("a/").prefixed("a/"), snapshot);
    /// ```
    pub fn under(&self, prefix: &str) -> Self {
        let inside = self.matrices.iter().filter_map(|(name, matrix)| {
            Some((name.strip_prefix(prefix)?.to_string(), matrix.clone()))
        });
        inside.collect()
    }

    /// The same matrices with `prefix` before every name.
    pub fn prefixed(self, prefix: &str) -> Self {
        self.matrices
            .into_iter()
            .map(|(name, matrix)| (format!("{prefix}{name}"), matrix))
            .collect()
    }

    /// Refuses anything but exactly these names and shapes with finite values.
    pub(crate) fn check<'a>(&self, wanted: impl Iterator<Item = (&'a str, Shape)>) -> Result<()> {
        let mut known = std::collections::BTreeSet::new();
        for (name, expected) in wanted {
            known.insert(name);
            let Some(matrix) = self.get(name) else {
                let name = name.to_string();
                return Err(Error::MissingParameter { name, place: "the snapshot" });
            };
            matrix.check(name, expected)?;
        }
        match self.matrices.keys().find(|name| !known.contains(name.as_str())) {
            Some(name) => Err(Error::UnknownParameter(name.clone())),
            None => Ok(()),
        }
    }
}

impl FromIterator<(String, Matrix)> for Snapshot {
    fn from_iter<I: IntoIterator<Item = (String, Matrix)>>(entries: I) -> Self {
        Self { matrices: entries.into_iter().collect() }
    }
}

impl Extend<(String, Matrix)> for Snapshot {
    fn extend<I: IntoIterator<Item = (String, Matrix)>>(&mut self, entries: I) {
        self.matrices.extend(entries);
    }
}

impl IntoIterator for Snapshot {
    type Item = (String, Matrix);
    type IntoIter = std::collections::btree_map::IntoIter<String, Matrix>;

    fn into_iter(self) -> Self::IntoIter {
        self.matrices.into_iter()
    }
}

impl Matrix {
    fn check(&self, name: &str, expected: Shape) -> Result<()> {
        let name = || name.to_string();
        if self.shape != expected {
            return Err(Error::ParameterShape { name: name(), expected, found: self.shape });
        }
        crate::var::check_length("restore", self.shape, self.values.len())?;
        match self.values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(Error::NotFinite {
                name: name(),
                value: self.values[index],
                row: index / expected[1],
                column: index % expected[1],
            }),
            None => Ok(()),
        }
    }
}
