//! What a program for whole screens has switched on in our terminal, and what switches it off again when we leave the program
//! running: a shell that comes after it would be unreadable, or get every movement of the mouse.

/// Modes that outlast a program which is left, and whether leaving them is safe where nobody entered them.
const HARMLESS: &[u8] =
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[?25h\x1b[0m";
const ALTERNATE_SCREEN: &[u8] = b"\x1b[?1049";
const LEAVE_ALTERNATE_SCREEN: &[u8] = b"\x1b[?1049l";

/// Follows what is written. Leaving the alternate screen moves the cursor where nobody had entered it, so that one is counted.
#[derive(Debug, Default)]
pub(super) struct LeftModes {
    is_alternate: bool,
    /// The end of what was written last: a sequence may be cut.
    tail: Vec<u8>,
}

impl LeftModes {
    pub(super) fn written(&mut self, bytes: &[u8]) {
        let mut seen = std::mem::take(&mut self.tail);
        seen.extend(bytes);
        for at in memchr::memmem::find_iter(&seen, ALTERNATE_SCREEN) {
            match seen.get(at + ALTERNATE_SCREEN.len()) {
                Some(b'h') => self.is_alternate = true,
                Some(b'l') => self.is_alternate = false,
                _ => {}
            }
        }
        let kept = seen.len().saturating_sub(ALTERNATE_SCREEN.len());
        self.tail = seen.split_off(kept);
    }

    /// What to write when the program is left running.
    pub(super) fn leave(&self) -> Vec<u8> {
        let alternate = if self.is_alternate { LEAVE_ALTERNATE_SCREEN } else { b"" };
        [alternate, HARMLESS].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAVE_ALTERNATE_SCREEN, LeftModes};

    #[test]
    fn the_alternate_screen_is_left_only_if_it_was_entered() {
        let is_left = |written: &[&[u8]]| {
            let mut modes = LeftModes::default();
            written.iter().for_each(|bytes| modes.written(bytes));
            modes.leave().starts_with(LEAVE_ALTERNATE_SCREEN)
        };
        assert!(!is_left(&[b"plain"]));
        assert!(is_left(&[b"x\x1b[?1049hy"]));
        assert!(is_left(&[b"x\x1b[?10", b"49", b"hy"]), "a sequence that was cut");
        assert!(!is_left(&[b"\x1b[?1049h", b"\x1b[?1049l$ "]));
    }
}
