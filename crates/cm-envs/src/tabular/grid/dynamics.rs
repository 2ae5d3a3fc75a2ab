//! Where the moves of a grid lead.

use super::{Cell, GridRules, Move};
use crate::Error;
use crate::tabular::ControlledProcess;

/// A grid whose rules have been [`check`]ed.
pub(super) struct Dynamics<'a> {
    pub(super) rules: &'a GridRules,
    pub(super) width: usize,
    pub(super) cells: &'a [Cell],
}

/// Refuses probabilities outside `[0, 1]`, a wind that does not blow anywhere, and teleporters that
/// are missing or lead nowhere.
pub(super) fn check(rules: &GridRules, cells: &[Cell]) -> Result<(), Error> {
    let rule = |key: String, reason: &str| Err(Error::GridRule { key, reason: reason.into() });
    let mut probabilities = vec![("slip".to_owned(), rules.slip)];
    if let Some(wind) = rules.wind {
        if wind.direction == Move::Stay {
            return rule(
                "wind.direction".into(),
                "expected one of the four directions, found stay",
            );
        }
        probabilities.push(("wind.probability".into(), wind.probability));
    }
    probabilities
        .extend(rules.teleport.iter().map(|(letter, &p)| (format!("teleport.{letter}"), p)));
    for (key, probability) in probabilities {
        if !(0.0..=1.0).contains(&probability) {
            return rule(key, &format!("expected a probability in [0, 1], found {probability}"));
        }
    }
    if cells.contains(&Cell::Windy) && rules.wind.is_none() {
        return rule("wind".into(), "expected a wind because the layout has `,`, found none");
    }
    for &letter in rules.teleport.keys() {
        if !cells.contains(&Cell::Teleporter(letter)) {
            let reason =
                format!("expected the layout to have the teleporter `{letter}`, found none");
            return rule(format!("teleport.{letter}"), &reason);
        }
    }
    for &cell in cells {
        if let Cell::Teleporter(letter) = cell {
            let exit = letter.to_ascii_uppercase();
            if !cells.contains(&Cell::Named(exit)) {
                let reason = format!("expected an exit `{exit}` for the teleporter, found none");
                return rule(format!("layout, `{letter}`"), &reason);
            }
        }
    }
    Ok(())
}

impl Dynamics<'_> {
    /// The process over states, given the state of each cell and the cell of each state.
    pub(super) fn process(
        &self,
        states: &[Option<usize>],
        places: &[usize],
    ) -> Result<ControlledProcess, Error> {
        ControlledProcess::from_fn(places.len(), Move::ALL.len(), |state, action| {
            let outcomes = self.outcomes(places[state], Move::ALL[action]);
            let named = outcomes.into_iter().filter_map(|(place, p)| Some((states[place]?, p)));
            named.collect::<Vec<_>>()
        })
    }

    /// The cells an action may lead to, with their probabilities; a cell may be listed more than
    /// once.
    fn outcomes(&self, place: usize, action: Move) -> Vec<(usize, f64)> {
        match self.cells[place] {
            Cell::Absorbing => vec![(place, 1.0)],
            Cell::Slippery => {
                let slip = self.rules.slip;
                let mut outcomes = vec![(self.moved(place, action), 1.0 - slip)];
                outcomes.extend(sides(action).map(|side| (self.moved(place, side), slip / 2.0)));
                outcomes
            }
            Cell::Windy => {
                let moved = self.moved(place, action);
                let Some(wind) = self.rules.wind else { return vec![(moved, 1.0)] };
                let pushed = self.moved(moved, wind.direction);
                vec![(moved, 1.0 - wind.probability), (pushed, wind.probability)]
            }
            Cell::Teleporter(letter) => {
                let fires = self.rules.teleport.get(&letter).copied().unwrap_or(1.0);
                let exit = Cell::Named(letter.to_ascii_uppercase());
                let exits: Vec<usize> =
                    (0..self.cells.len()).filter(|&place| self.cells[place] == exit).collect();
                let each = fires / exits.len() as f64;
                let mut outcomes = vec![(self.moved(place, action), 1.0 - fires)];
                outcomes.extend(exits.into_iter().map(|exit| (exit, each)));
                outcomes
            }
            Cell::Floor | Cell::Named(_) | Cell::Door(_) => vec![(self.moved(place, action), 1.0)],
            Cell::Wall => Vec::new(),
        }
    }

    /// The cell one step further, or the same where something is in the way.
    fn moved(&self, place: usize, direction: Move) -> usize {
        let blocks = |cell: Cell| match cell {
            Cell::Wall => true,
            Cell::Door(door) => door != direction,
            _ => false,
        };
        // A wall is never left, so here only a door can hold back.
        if blocks(self.cells[place]) {
            return place;
        }
        match self.neighbour(place, direction) {
            Some(next) if !blocks(self.cells[next]) => next,
            _ => place,
        }
    }

    fn neighbour(&self, place: usize, direction: Move) -> Option<usize> {
        let (line, column) = (place / self.width, place % self.width);
        match direction {
            Move::North => place.checked_sub(self.width),
            Move::East => (column + 1 < self.width).then_some(place + 1),
            Move::South => {
                ((line + 1) * self.width < self.cells.len()).then_some(place + self.width)
            }
            Move::West => (column > 0).then(|| place - 1),
            Move::Stay => None,
        }
    }
}

/// The two directions a move may slip to.
fn sides(action: Move) -> [Move; 2] {
    match action {
        Move::North | Move::South => [Move::West, Move::East],
        Move::East | Move::West => [Move::North, Move::South],
        Move::Stay => [Move::Stay, Move::Stay],
    }
}
