//! Replies of the terminal among keys: answers to what the command asked it before a question was shown. They belong to
//! the command, which may wait for them, and must never answer a question.

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// The input of a terminal, separated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) keys: Vec<u8>,
    pub(crate) replies: Vec<u8>,
}

/// Extracts complete replies from input that was read at once.
pub(super) fn tell_apart(mut bytes: &[u8]) -> Read {
    let mut read = Read::default();
    while let Some(first) = bytes.first() {
        match reply(bytes) {
            Some(length) => {
                read.replies.extend_from_slice(&bytes[..length]);
                bytes = &bytes[length..];
            }
            None => {
                read.keys.push(*first);
                bytes = &bytes[1..];
            }
        }
    }
    read
}

/// The length of the reply that begins here. The forms are those of xterm's "Control Sequences"; no key has such a
/// form.
fn reply(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [ESCAPE, b'[', rest @ ..] => {
            let length = rest.iter().position(|byte| (b'@'..=b'~').contains(byte))?;
            let (body, end) = (&rest[..length], rest[length]);
            let is_private = matches!(body.first(), Some(b'?' | b'>' | b'='));
            let is_reply = match end {
                // Device attributes, modes, kitty's keyboard protocol, colour schemes.
                b'c' | b'u' | b'n' if is_private => true,
                b'y' => body.contains(&b'$'),
                // The cursor position. A modified F3 is 1 and a number up to 16.
                b'R' => is_private || is_place(body),
                b'n' => body == b"0" || body == b"3",
                b't' => !body.is_empty(),
                _ => false,
            };
            is_reply.then_some(length + 3)
        }
        // Strings: colours, the title, settings, the version.
        [ESCAPE, b']' | b'P' | b'_', rest @ ..] => {
            let at = rest.iter().position(|byte| matches!(*byte, ESCAPE | BELL))?;
            match rest[at..] {
                [BELL, ..] => Some(at + 3),
                [ESCAPE, b'\\', ..] => Some(at + 4),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_place(body: &[u8]) -> bool {
    let mut numbers = body
        .split(|byte| *byte == b';')
        .map(|part| std::str::from_utf8(part).ok().and_then(|part| part.parse::<u16>().ok()));
    match (numbers.next().flatten(), numbers.next().flatten(), numbers.next()) {
        (Some(row), Some(column), None) => row > 1 || column > 16,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Read, tell_apart};

    #[test]
    fn replies_of_the_terminal_are_no_keys() {
        for reply in [
            "\x1b[?62;22c",
            "\x1b[>41;354;0c",
            "\x1b[24;80R",
            "\x1b[?2026;2$y",
            "\x1b[?1u",
            "\x1b[0n",
            "\x1b[8;24;80t",
            "\x1b]11;rgb:0000/0000/0000\x1b\\",
            "\x1b]10;rgb:ff/ff/ff\x07",
            "\x1bP1$r0m\x1b\\",
            "\x1bP>|tmux 3.4\x1b\\",
        ] {
            let read = tell_apart(format!("{reply}y{reply}").as_bytes());
            let expected = Read { keys: b"y".to_vec(), replies: reply.repeat(2).into_bytes() };
            assert_eq!(read, expected, "{reply:?}");
        }
    }

    #[test]
    fn keys_are_no_replies() {
        for keys in [
            "y",
            "\x1b",
            "\x1b[A",
            "\x1b[1;5C",
            "\x1b[1;2R",
            "\x1b[103;5u",
            "\x1b[27;5;103~",
            "\x1b[200~c\x1b[201~",
            "\x1b[<0;3;4M",
            "\x1b]",
            "\x1bP",
            "\x1bOP",
            "\x1b[",
            "\x1b[I",
        ] {
            let read = tell_apart(keys.as_bytes());
            assert_eq!(read, Read { keys: keys.into(), replies: Vec::new() }, "{keys:?}");
        }
    }
}
