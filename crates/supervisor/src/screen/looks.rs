//! Numbers for looks. The model stores a colour with every cell. It is given these numbers as colours, and so stores
//! complete looks: both what it supports and what it does not (blinking, strike-through, kinds of underline, links).

use super::pen::Look;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of looks on a screen and in the output since the last count. Further ones become plain.
const MAX_LOOKS: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct Looks {
    /// By number minus one: 0 is plain.
    looks: Vec<Look>,
    numbers: BTreeMap<Look, u32>,
    free: Vec<u32>,
}

impl Looks {
    /// The number of this look. `in_use` returns the numbers on the screen, in case there are too many.
    pub(super) fn number(&mut self, look: &Look, in_use: impl FnOnce() -> BTreeSet<u32>) -> u32 {
        if *look == Look::default() {
            return 0;
        }
        if let Some(number) = self.numbers.get(look) {
            return *number;
        }
        if self.looks.len() >= MAX_LOOKS && self.free.is_empty() {
            let in_use = in_use();
            self.numbers.retain(|_, number| in_use.contains(number));
            self.free = (1..=u32::try_from(self.looks.len()).unwrap_or(0))
                .filter(|number| !in_use.contains(number))
                .collect();
        }
        let number = match self.free.pop() {
            Some(number) => {
                if let Some(place) = self.looks.get_mut(index_of(number)) {
                    *place = look.clone();
                }
                number
            }
            None if self.looks.len() < MAX_LOOKS => {
                self.looks.push(look.clone());
                u32::try_from(self.looks.len()).unwrap_or(0)
            }
            None => return 0,
        };
        self.numbers.insert(look.clone(), number);
        number
    }

    pub(super) fn get(&self, number: u32) -> Option<&Look> {
        self.looks.get(index_of(number)).filter(|_| number > 0)
    }
}

fn index_of(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1)
}

/// Encodes a number as a colour for the model.
pub(super) fn sequence_of(number: u32) -> Vec<u8> {
    let [_, red, green, blue] = number.to_be_bytes();
    match number {
        0 => b"\x1b[m".to_vec(),
        _ => format!("\x1b[38;2;{red};{green};{blue}m").into_bytes(),
    }
}

/// Decodes it.
pub(super) fn number_of(cell: &vt100::Cell) -> u32 {
    match cell.fgcolor() {
        vt100::Color::Rgb(red, green, blue) => u32::from_be_bytes([0, red, green, blue]),
        vt100::Color::Default | vt100::Color::Idx(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(number: u16) -> Look {
        let mut look = Look::default();
        look.attributes.apply(format!("38;2;1;{};{}", number >> 8, number & 0xff).as_bytes());
        look
    }

    #[test]
    fn numbers_are_given_again_when_their_look_is_on_no_screen() {
        let mut looks = Looks::default();
        assert_eq!(looks.number(&Look::default(), BTreeSet::new), 0);
        let most = u16::try_from(MAX_LOOKS).unwrap();
        for number in 0..most {
            assert_eq!(looks.number(&look(number), BTreeSet::new), u32::from(number) + 1);
        }
        assert_eq!(looks.number(&look(5), BTreeSet::new), 6);
        let again = looks.number(&look(most), || (1..=9).collect());
        assert!(again > 9 && looks.get(again) == Some(&look(most)));
        assert_eq!(looks.get(6), Some(&look(5)));
        assert_eq!(looks.number(&look(5), BTreeSet::new), 6);
        assert_eq!(looks.get(0), None);
    }
}
