//! The attributes of text that is written next: `SGR`, as defined by ECMA-48 and xterm.
//!
//! Stored as the numbers that set them, so that they can be restored exactly.

use std::collections::BTreeMap;

/// The aspect that an `SGR` number sets; each has one value at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Aspect {
    Bold,
    Faint,
    Slant,
    Underline,
    Blink,
    Inverse,
    Conceal,
    Strike,
    Font,
    Overline,
    Foreground,
    Background,
    UnderlineColour,
}

/// No colour is longer: `58:2:1:255:255:255` has 18. Nor is another style: `4:5` has 3. Every cell may be drawn with all
/// of them.
const MAX_COLOUR_BYTES: usize = 20;
const MAX_STYLE_BYTES: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attributes {
    set: BTreeMap<Aspect, Vec<u8>>,
}

impl Attributes {
    /// Applies the body of one `SGR` sequence.
    pub(super) fn apply(&mut self, body: &[u8]) {
        let mut parts = body.split(|byte| *byte == b';');
        while let Some(part) = parts.next() {
            let number = super::scan::numbers(part).next().unwrap_or(0);
            let has_colons = part.contains(&b':');
            match number {
                0 => self.set.clear(),
                1 => self.put(Aspect::Bold, part),
                2 => self.put(Aspect::Faint, part),
                3 | 20 => self.put(Aspect::Slant, part),
                4 if part == b"4:0" => self.drop(&[Aspect::Underline]),
                4 | 21 => self.put(Aspect::Underline, part),
                5 | 6 => self.put(Aspect::Blink, part),
                7 => self.put(Aspect::Inverse, part),
                8 => self.put(Aspect::Conceal, part),
                9 => self.put(Aspect::Strike, part),
                10 => self.drop(&[Aspect::Font]),
                11..=19 => self.put(Aspect::Font, part),
                22 => self.drop(&[Aspect::Bold, Aspect::Faint]),
                23 => self.drop(&[Aspect::Slant]),
                24 => self.drop(&[Aspect::Underline]),
                25 => self.drop(&[Aspect::Blink]),
                27 => self.drop(&[Aspect::Inverse]),
                28 => self.drop(&[Aspect::Conceal]),
                29 => self.drop(&[Aspect::Strike]),
                30..=37 | 90..=97 => self.put(Aspect::Foreground, part),
                39 => self.drop(&[Aspect::Foreground]),
                40..=47 | 100..=107 => self.put(Aspect::Background, part),
                49 => self.drop(&[Aspect::Background]),
                53 => self.put(Aspect::Overline, part),
                55 => self.drop(&[Aspect::Overline]),
                59 => self.drop(&[Aspect::UnderlineColour]),
                38 | 48 | 58 => {
                    let aspect = match number {
                        38 => Aspect::Foreground,
                        48 => Aspect::Background,
                        _ => Aspect::UnderlineColour,
                    };
                    let mut whole = part.to_vec();
                    if !has_colons {
                        let kind = parts.next().unwrap_or_default();
                        let more = if kind == b"2" { 3 } else { 1 };
                        for part in std::iter::once(kind).chain(parts.by_ref().take(more)) {
                            whole.push(b';');
                            whole.extend_from_slice(part);
                        }
                    }
                    self.put(aspect, &whole);
                }
                _ => {}
            }
        }
    }

    fn put(&mut self, aspect: Aspect, part: &[u8]) {
        let is_colour =
            matches!(aspect, Aspect::Foreground | Aspect::Background | Aspect::UnderlineColour);
        if part.len() <= if is_colour { MAX_COLOUR_BYTES } else { MAX_STYLE_BYTES } {
            self.set.insert(aspect, part.to_vec());
        }
    }

    fn drop(&mut self, aspects: &[Aspect]) {
        self.set.retain(|aspect, _| !aspects.contains(aspect));
    }

    /// The background colour, which erasing also leaves behind.
    pub(super) fn background(&self) -> Option<&[u8]> {
        self.set.get(&Aspect::Background).map(Vec::as_slice)
    }

    /// Restores all attributes, whatever is set now.
    pub(super) fn restore(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(b"\x1b[0");
        for part in self.set.values() {
            to.push(b';');
            to.extend_from_slice(part);
        }
        to.push(b'm');
    }
}
