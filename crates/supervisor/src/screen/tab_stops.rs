//! Tab stops. The terminal keeps its own during a question; these are for the content, which has to be drawn again as
//! the command's tabs have arranged it.

use std::collections::BTreeSet;

/// The distance of tab stops that the command has not changed.
const TAB: u16 = 8;

#[derive(Debug, Default)]
pub(super) struct TabStops {
    /// The columns, from 0; `None` before the first change.
    changed: Option<BTreeSet<u16>>,
}

impl TabStops {
    pub(super) fn are_changed(&self) -> bool {
        self.changed.is_some()
    }

    /// `HTS`.
    pub(super) fn set(&mut self, column: u16, columns: u16) {
        self.change(columns).insert(column);
    }

    /// `TBC` for one column.
    pub(super) fn clear(&mut self, column: u16, columns: u16) {
        self.change(columns).remove(&column);
    }

    /// `TBC` for all.
    pub(super) fn clear_all(&mut self) {
        self.changed = Some(BTreeSet::new());
    }

    /// `RIS`, `DECST8C`.
    pub(super) fn reset(&mut self) {
        self.changed = None;
    }

    /// So many stops after a column, from 1; without them, the last column.
    pub(super) fn after(&self, column: u16, count: u16, columns: u16) -> u16 {
        let last = columns.saturating_sub(1);
        let next = match &self.changed {
            Some(stops) => {
                let mut after = stops.range(column.saturating_add(1)..);
                after.nth(usize::from(count.saturating_sub(1))).copied()
            }
            None => Some((column / TAB).saturating_add(count).saturating_mul(TAB)),
        };
        next.unwrap_or(last).min(last)
    }

    /// So many stops before a column, from 1; without them, the first column.
    pub(super) fn before(&self, column: u16, count: u16) -> u16 {
        match &self.changed {
            Some(stops) => stops
                .range(..column)
                .nth_back(usize::from(count.saturating_sub(1)))
                .copied()
                .unwrap_or(0),
            None => column.div_ceil(TAB).saturating_sub(count) * TAB,
        }
    }

    fn change(&mut self, columns: u16) -> &mut BTreeSet<u16> {
        self.changed.get_or_insert_with(|| (0..columns).step_by(usize::from(TAB)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_every_eight_columns_until_they_are_changed() {
        let mut stops = TabStops::default();
        let around =
            |stops: &TabStops, column| (stops.before(column, 1), stops.after(column, 1, 40));
        let unchanged = [(0, (0, 8)), (1, (0, 8)), (8, (0, 16)), (9, (8, 16)), (39, (32, 39))];
        for (column, expected) in unchanged {
            assert_eq!(around(&stops, column), expected, "{column}");
        }
        stops.set(3, 40);
        stops.clear(8, 40);
        let changed = [(0, (0, 3)), (3, (0, 16)), (9, (3, 16)), (39, (32, 39))];
        for (column, expected) in changed {
            assert_eq!(around(&stops, column), expected, "{column}");
        }
        assert_eq!((stops.before(20, 2), stops.after(3, 2, 40)), (3, 24));
        assert_eq!((stops.before(20, 999), stops.after(3, 999, 40)), (0, 39));
        stops.clear_all();
        assert_eq!(around(&stops, 5), (0, 39));
        stops.reset();
        assert_eq!(around(&stops, 5), (0, 8));
    }
}
