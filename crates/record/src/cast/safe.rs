//! What a recording may do to the terminal on which it is replayed (attacks H03, H04): print, move, erase and colour. A live
//! command talks to a terminal that answers it; a replay has nobody who reads answers, so they would be typed into the shell
//! that comes after it. Whatever asks, sets the clipboard or the title, or changes what keys and the mouse send is left out:
//! only what is listed here passes.

/// Longer than any sequence that passes.
const MAX_SEQUENCE: usize = 64;
/// A cell further away than this is on no screen.
const MAX_NUMBER: u32 = 9999;
/// Modes that only say how output looks: origin, wrapping, the cursor, the alternate screen, drawing at once.
const HARMLESS_MODES: [u32; 8] = [6, 7, 25, 47, 1047, 1048, 1049, 2026];
const ALTERNATE_SCREENS: [u32; 3] = [47, 1047, 1049];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// After `ESC (` or `ESC )`.
    Charset(char),
    /// After `ESC` and an intermediate that nothing follows which would pass.
    Ignored,
    Sequence,
    /// An operating system command, which a bell may end, too.
    Command,
    /// A device control, application, privacy or start string.
    String,
    StringEscape,
}

/// Follows output in pieces of any size.
#[derive(Clone, Debug, Default)]
pub struct SafeOutput {
    state: State,
    sequence: String,
    is_alternate: bool,
    has_margins: bool,
    has_origin: bool,
}

impl SafeOutput {
    /// What of it may be written to a terminal.
    pub fn filter(&mut self, text: &str) -> String {
        let mut passed = String::with_capacity(text.len());
        for character in text.chars() {
            self.take(character, &mut passed);
        }
        passed
    }

    /// Ends what was begun, so that a shell can go on.
    pub fn end(&mut self) -> String {
        self.state = State::Text;
        let leave = if std::mem::take(&mut self.is_alternate) { "\x1b[?1049l" } else { "" };
        // Both of these move the cursor, so they are undone only where they were done.
        let margins = match (self.has_origin, self.has_margins) {
            (true, _) => "\x1b[?6l\x1b[r\x1b[9999;1H",
            (false, true) => "\x1b7\x1b[r\x1b8",
            (false, false) => "",
        };
        (self.has_origin, self.has_margins) = (false, false);
        format!("{margins}\x0f\x1b(B{leave}\x1b[4l\x1b[?7h\x1b[?25h\x1b[?2026l\x1b[0m")
    }

    fn take(&mut self, character: char, passed: &mut String) {
        self.state = match (self.state, character) {
            // Cancel, substitute: whatever was begun is over.
            (_, '\x18' | '\x1a') => State::Text,
            (State::String | State::Command | State::StringEscape, '\x1b') => State::StringEscape,
            (State::StringEscape, '\\') => State::Text,
            (State::Command, '\x07') => State::Text,
            (State::String | State::Command, _) => self.state,
            (_, '\x1b') => State::Escape,
            (State::Text, _) => {
                if is_plain(character) {
                    passed.push(character);
                }
                State::Text
            }
            (State::Escape | State::StringEscape, _) => self.escape(character, passed),
            (State::Charset(set), 'A' | 'B' | '0') => {
                passed.extend(['\x1b', set, character]);
                State::Text
            }
            (State::Charset(_), _) => State::Text,
            (State::Ignored, ' '..='/') => State::Ignored,
            (State::Ignored, _) => State::Text,
            (State::Sequence, ' '..='?') => {
                if self.sequence.len() <= MAX_SEQUENCE {
                    self.sequence.push(character);
                }
                State::Sequence
            }
            (State::Sequence, '@'..='~') => {
                self.sequence(character, passed);
                State::Text
            }
            // Terminals carry out a control in the middle of a sequence.
            (State::Sequence, '\0'..='\x1f') => {
                if is_plain(character) {
                    passed.push(character);
                }
                State::Sequence
            }
            (State::Sequence, _) => State::Text,
        };
    }

    fn escape(&mut self, character: char, passed: &mut String) -> State {
        match character {
            '[' => {
                self.sequence.clear();
                State::Sequence
            }
            ']' => State::Command,
            'P' | 'X' | '^' | '_' => State::String,
            '(' | ')' => State::Charset(character),
            ' '..='/' => State::Ignored,
            // Save and restore the cursor, index, next line, reverse index. A tab stop would outlast the replay.
            '7' | '8' | 'D' | 'E' | 'M' => {
                passed.extend(['\x1b', character]);
                State::Text
            }
            // A full reset would undo what the person has set.
            'c' => {
                passed.push_str("\x0f\x1b(B\x1b[0m\x1b[r\x1b[H\x1b[2J");
                State::Text
            }
            _ => State::Text,
        }
    }

    fn sequence(&mut self, last: char, passed: &mut String) {
        let (prefix, rest) = match self.sequence.strip_prefix('?') {
            Some(rest) => ("?", rest),
            None => ("", self.sequence.as_str()),
        };
        let is_number = |part: &str| {
            part.is_empty() || part.parse::<u32>().is_ok_and(|number| number <= MAX_NUMBER)
        };
        let is_listed = rest.split([';', ':']).all(is_number);
        let numbers = || rest.split(';').map(|part| part.parse::<u32>().unwrap_or(0));
        let is_one = !rest.contains([';', ':']);
        let may_pass = self.sequence.len() <= MAX_SEQUENCE
            && is_listed
            && match (prefix, last) {
                ("", '@'..='M' | 'P' | 'X' | 'Z' | '`' | 'a' | 'b' | 'd'..='f' | 'm' | 'r') => true,
                // With more numbers the last of these track the mouse.
                ("", 'S' | 'T') => is_one,
                ("", 's' | 'u') => rest.is_empty(),
                // Insert mode.
                ("", 'h' | 'l') => numbers().all(|number| number == 4),
                ("?", 'h' | 'l') => numbers().all(|number| HARMLESS_MODES.contains(&number)),
                ("?", 'J' | 'K') => true,
                _ => false,
            };
        if !may_pass {
            return;
        }
        let is_mode = prefix == "?" && matches!(last, 'h' | 'l');
        if is_mode && numbers().any(|number| ALTERNATE_SCREENS.contains(&number)) {
            self.is_alternate = last == 'h';
        }
        self.has_origin |= is_mode && numbers().any(|number| number == 6);
        self.has_margins |= last == 'r';
        passed.push_str("\x1b[");
        passed.push_str(&self.sequence);
        passed.push(last);
    }
}

/// Text, and controls that only move. A terminal takes some characters above 127 for the beginning of a sequence.
fn is_plain(character: char) -> bool {
    match character {
        '\x08'..='\r' | '\x0e' | '\x0f' => true,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => false,
        _ => true,
    }
}
