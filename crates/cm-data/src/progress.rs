//! What long work says of itself as it goes on.

/// Something happened in the work that is watched.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Work of known kind begins, perhaps where earlier work stopped.
    Began {
        /// What it is about, such as a file's name.
        what: &'a str,
        /// What is counted.
        unit: Unit,
        /// How much is done already.
        done: u64,
        /// How much there is altogether, if that is known.
        total: Option<u64>,
    },
    /// Work that counts nothing begins.
    Busy {
        /// What it does, such as `reading walks.csv`.
        what: &'a str,
    },
    /// So much more is done.
    Advanced(u64),
    /// How the work is going, in a few words.
    Going(&'a str),
    /// An expert in training walked without exploring.
    Evaluated {
        /// Steps of the environment that it was trained for.
        steps: u64,
        /// Mean units per second along the direction it was told.
        velocity: f64,
        /// Falls in a thousand steps.
        falls: f64,
    },
    /// The work that began last is over.
    Ended,
}

/// What work counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of a file.
    Bytes,
    /// Rows of a data set.
    Rows,
    /// Steps of an environment.
    Steps,
}

/// Whoever watches: called from any thread, one event after another on each.
pub type Progress<'a> = &'a (dyn Fn(Event<'_>) + Sync);

/// Watches nothing.
///
/// ```
/// let file = tempfile::NamedTempFile::new()?;
/// let sum = cm_data::sha256_of_file(file.path(), &cm_data::silent)?;
/// assert!(sum.starts_with("e3b0c442"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn silent(_: Event<'_>) {}

/// Work under way; dropping it says that it has ended.
pub(crate) struct Stage<'a>(Progress<'a>);

impl<'a> Stage<'a> {
    pub(crate) fn begin(
        progress: Progress<'a>,
        what: &str,
        unit: Unit,
        done: u64,
        total: Option<u64>,
    ) -> Self {
        progress(Event::Began { what, unit, done, total });
        Self(progress)
    }

    pub(crate) fn busy(progress: Progress<'a>, what: &str) -> Self {
        progress(Event::Busy { what });
        Self(progress)
    }

    pub(crate) fn advance(&self, by: u64) {
        (self.0)(Event::Advanced(by));
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        (self.0)(Event::Ended);
    }
}
