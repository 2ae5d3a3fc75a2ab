//! CSV with a column that names the trajectory, for people's own logs.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use csv::StringRecord;

use super::ReadOptions;
use crate::{Dataset, Error, Matrix, Result};

pub(super) fn read(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    from_reader(File::open(path).map_err(Error::io("open the file"))?, options)
}

fn from_reader(source: impl Read, options: &ReadOptions) -> Result<Dataset> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source);
    let names = reader.headers().map_err(|error| Error::format("CSV", error))?.clone();
    let trajectory = position(&names, &options.csv.trajectory)?;
    let mut observations = Group::with_prefix(&names, &options.csv.observation_prefix)?;
    let mut actions = Group::with_prefix(&names, &options.csv.action_prefix)?;
    let mut extras = options
        .extras
        .iter()
        .map(|name| Ok(Group { columns: vec![position(&names, name)?], numbers: Vec::new() }))
        .collect::<Result<Vec<_>>>()?;

    let mut ends = Trajectories::default();
    for record in reader.records() {
        let record = record.map_err(|error| Error::format("CSV", error))?;
        ends.push(&record, trajectory, &names)?;
        for group in [&mut observations, &mut actions].into_iter().chain(&mut extras) {
            group.push(&record, &names)?;
        }
    }
    let data = Dataset::new(observations.matrix()?, actions.matrix()?, ends.finish())?;
    options
        .extras
        .iter()
        .zip(extras)
        .try_fold(data, |data, (name, extra)| data.with_extra(name.clone(), extra.matrix()?))
}

fn position(names: &StringRecord, name: &str) -> Result<usize> {
    names.iter().position(|known| known == name).ok_or_else(|| Error::Missing {
        key: name.to_owned(),
        found: names.iter().map(str::to_owned).collect(),
    })
}

/// Columns that make up one array, and its numbers so far.
struct Group {
    columns: Vec<usize>,
    numbers: Vec<f32>,
}

impl Group {
    fn with_prefix(names: &StringRecord, prefix: &str) -> Result<Self> {
        let columns: Vec<usize> =
            (0..names.len()).filter(|&column| names[column].starts_with(prefix)).collect();
        if columns.is_empty() {
            let found = names.iter().map(str::to_owned).collect();
            return Err(Error::Missing { key: format!("{prefix}..."), found });
        }
        Ok(Self { columns, numbers: Vec::new() })
    }

    fn push(&mut self, record: &StringRecord, names: &StringRecord) -> Result<()> {
        for &column in &self.columns {
            let number = record[column]
                .parse()
                .map_err(|_| cell_error(record, names, column, "a number"))?;
            self.numbers.push(number);
        }
        Ok(())
    }

    fn matrix(self) -> Result<Matrix> {
        let columns = self.columns.len();
        Matrix::from_vec(self.numbers.len() / columns, columns, self.numbers)
    }
}

/// Where the name of the trajectory changes.
#[derive(Default)]
struct Trajectories {
    seen: HashSet<String>,
    current: String,
    ends: Vec<usize>,
    rows: usize,
}

impl Trajectories {
    fn push(&mut self, record: &StringRecord, column: usize, names: &StringRecord) -> Result<()> {
        let name = &record[column];
        if self.rows == 0 || name != self.current {
            if !self.seen.insert(name.to_owned()) {
                let expected = "a trajectory whose rows follow one another";
                return Err(cell_error(record, names, column, expected));
            }
            if self.rows > 0 {
                self.ends.push(self.rows);
            }
            name.clone_into(&mut self.current);
        }
        self.rows += 1;
        Ok(())
    }

    fn finish(mut self) -> Vec<usize> {
        self.ends.push(self.rows);
        self.ends
    }
}

fn cell_error(
    record: &StringRecord,
    names: &StringRecord,
    column: usize,
    expected: &'static str,
) -> Error {
    Error::Cell {
        line: record.position().map_or(0, csv::Position::line),
        column: names[column].to_owned(),
        found: record[column].to_owned(),
        expected,
    }
}

#[cfg(test)]
mod tests {
    use cm_random::{Philox, below_u32};
    use rand_core::Rng;

    use super::*;

    const PIECES: [&[u8]; 16] = [
        b",",
        b"\n",
        b"\r\n",
        b"\"",
        b"\"\"",
        b"nan",
        b"-inf",
        b"1e999",
        b"0x1",
        b"trajectory",
        b"observation_x",
        b"action",
        b"\xff\xfe",
        b"\0",
        b"   ",
        b"12345678901234567890123",
    ];

    /// Files that are broken in every way are read or refused. `CM_FUZZ_CASES` sets how many.
    #[test]
    fn any_bytes_are_data_or_an_error() {
        let cases = match std::env::var("CM_FUZZ_CASES") {
            Ok(text) => text.parse().expect("CM_FUZZ_CASES is a number"),
            Err(_) => 50_000_u64,
        };
        let good = b"trajectory,observation_x,observation_y,action_x\n0,1,2,3\n0,2,2,3\n1,5,5,5\n";
        let (philox, options) = (Philox::new(17), ReadOptions::default());
        let (mut read, mut refused) = (0, 0);
        for case in 0..cases {
            let mut random = philox.stream(case, 0x7f3);
            let mut bytes = if case % 8 == 0 { Vec::new() } else { good.to_vec() };
            for _ in 0..below_u32(random.next_u32(), 6) {
                let at = below_u32(random.next_u32(), bytes.len() as u32 + 1) as usize;
                match below_u32(random.next_u32(), 4) {
                    0 => bytes.insert(at, random.next_u32() as u8),
                    1 if at < bytes.len() => drop(bytes.remove(at)),
                    2 => bytes.truncate(at),
                    _ => {
                        let piece = PIECES[below_u32(random.next_u32(), 16) as usize];
                        bytes.splice(at..at, piece.iter().copied());
                    }
                }
            }
            match from_reader(&bytes[..], &options) {
                Ok(data) => {
                    assert_eq!(data.ends().last(), Some(&data.steps()));
                    read += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
        }
        println!("{cases} cases: {read} read, {refused} refused");
        assert!(read > cases / 100 && refused > cases / 100, "{read} {refused}");
    }
}
