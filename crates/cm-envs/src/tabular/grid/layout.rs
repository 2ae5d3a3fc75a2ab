//! Symbols and how they are read.

use super::Move;
use crate::Error;

/// One cell of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell {
    Wall,
    Floor,
    Named(char),
    Door(Move),
    Slippery,
    Windy,
    Teleporter(char),
    Absorbing,
}

impl Cell {
    pub(crate) fn symbol(self) -> char {
        match self {
            Self::Wall => '#',
            Self::Floor => '.',
            Self::Named(letter) | Self::Teleporter(letter) => letter,
            Self::Door(Move::North) => '^',
            Self::Door(Move::East) => '>',
            Self::Door(Move::South) => 'v',
            Self::Door(Move::West) => '<',
            Self::Door(Move::Stay) => unreachable!("no symbol is read as such a door"),
            Self::Slippery => '~',
            Self::Windy => ',',
            Self::Absorbing => '@',
        }
    }

    fn from_symbol(symbol: char) -> Option<Self> {
        Some(match symbol {
            '#' => Self::Wall,
            '.' | ' ' => Self::Floor,
            '^' => Self::Door(Move::North),
            '>' => Self::Door(Move::East),
            'v' => Self::Door(Move::South),
            '<' => Self::Door(Move::West),
            '~' => Self::Slippery,
            ',' => Self::Windy,
            '@' => Self::Absorbing,
            'A'..='Z' => Self::Named(symbol),
            'a'..='z' => Self::Teleporter(symbol),
            _ => return None,
        })
    }
}

/// Number of columns and the cells line by line. Errors count lines and columns of the given text.
pub(super) fn parse(layout: &str) -> Result<(usize, Vec<Cell>), Error> {
    let lines: Vec<&str> = layout.lines().map(str::trim_end).collect();
    let Some(first) = lines.iter().position(|line| !line.is_empty()) else {
        let reason = "expected at least one line with cells, found none".into();
        return Err(Error::Grid { line: 1, column: 1, reason });
    };
    let last = lines.iter().rposition(|line| !line.is_empty()).unwrap_or(first);
    let rows = &lines[first..=last];
    let indentation = rows
        .iter()
        .map(|line| line.chars().take_while(|&symbol| symbol == ' ').count())
        .min()
        .unwrap_or(0);
    let width = rows[0].chars().count() - indentation;
    let mut cells = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let line = first + index + 1;
        let found = row.chars().count().saturating_sub(indentation);
        if found != width {
            let reason = format!("expected {width} cells as in the first line, found {found}");
            return Err(Error::Grid { line, column: indentation + found.min(width) + 1, reason });
        }
        for (column, symbol) in row.chars().enumerate().skip(indentation) {
            let cell = Cell::from_symbol(symbol).ok_or_else(|| Error::Grid {
                line,
                column: column + 1,
                reason: format!("expected one of #.^>v<~,@ or a letter, found {symbol:?}"),
            })?;
            cells.push(cell);
        }
    }
    Ok((width, cells))
}
