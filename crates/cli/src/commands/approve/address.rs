//! How a question is named on a command line: `1c9e0a55:3`, or `3` where nothing else can be meant.
//!
//! A name that fits two questions is an error; the wrong one must not be answered. Numbers begin at 1 in
//! every session, so a bare one may have moved on to another session since it was read: it is good for little.

use anyhow::{Context, anyhow, bail};
use palisade_ask::QuestionId;
use palisade_record::escape;
use std::str::FromStr;

/// Characters of a session's name that are needed at least. The last ones: they are random, while the first
/// are a clock that sessions of one minute share.
const MIN_TAIL_LEN: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The end of a session's name.
    tail: Option<String>,
    id: QuestionId,
}

/// A question that could be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate<'a> {
    pub(crate) session: &'a str,
    pub(crate) id: QuestionId,
    pub(crate) is_secret: bool,
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (tail, number) = match text.rsplit_once(':') {
            Some(("", _)) => bail!("there is no session before the `:`"),
            Some((tail, number)) => (Some(tail.to_owned()), number),
            None => (None, text),
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            bail!("a question is named by a number, or by SESSION:NUMBER");
        }
        let id =
            number.parse().map_err(|_| anyhow!("`{number}` is not the number of a question"))?;
        Ok(Self { tail, id: QuestionId(id) })
    }
}

impl Address {
    /// The one question that is meant, among those that are open in so many sessions.
    pub(crate) fn find<'a>(
        &self,
        open: impl Iterator<Item = Candidate<'a>>,
        sessions: usize,
    ) -> anyhow::Result<Candidate<'a>> {
        let mut found = open.filter(|question| self.fits(question));
        let first = found.next().with_context(|| {
            format!("no question {self} is open; `--json` lists those that are")
        })?;
        let full = |question: &Candidate<'_>| {
            format!("{}:{}", escape::text(question.session), question.id)
        };
        let others: Vec<String> = found.map(|other| full(&other)).collect();
        if !others.is_empty() {
            bail!("{self} may be {} or {}; say which session", full(&first), others.join(" or "));
        }
        if self.tail.is_none() && sessions > 1 {
            bail!("{sessions} sessions are asking; say which one, as in {}", full(&first));
        }
        if self.tail.is_none() && first.is_secret {
            bail!("question {self} is about a secret; name it in full, as `--json` does");
        }
        Ok(first)
    }

    fn fits(&self, question: &Candidate<'_>) -> bool {
        let is_session = self.tail.as_deref().is_none_or(|tail| {
            let is_long_enough = tail.chars().count() >= MIN_TAIL_LEN;
            question.session == tail || (is_long_enough && question.session.ends_with(tail))
        });
        question.id == self.id && is_session
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(tail) = &self.tail {
            write!(f, "{}:", escape::text(tail))?;
        }
        write!(f, "{}", self.id)
    }
}

/// A name for a question that is as short as can be while it fits no other session.
pub(crate) fn shown<'a>(
    sessions: impl Iterator<Item = &'a str>,
    session: &str,
    id: QuestionId,
) -> String {
    let shared = sessions
        .filter(|other| *other != session)
        .map(|other| {
            session.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count()
        })
        .max()
        .unwrap_or(0);
    let length = MIN_TAIL_LEN.max(shared + 1);
    let before = session.chars().count().saturating_sub(length);
    let tail: String = session.chars().skip(before).collect();
    format!("{tail}:{id}")
}

#[cfg(test)]
mod tests {
    use super::{Address, Candidate, QuestionId, shown};

    /// Two that began in the same minute and, though it will not happen, end alike.
    const FIRST: &str = "01934f2a-7c11-7e02-8f6a-2b7d1c9e0a55";
    const SECOND: &str = "01934f2a-7c12-7e02-8f6a-ffff1c9e0a55";
    const THIRD: &str = "01934f2a-7c13-7e02-8f6a-2b7d00000003";
    const OPEN: [(&str, u64, bool); 5] = [
        (FIRST, 1, false),
        (SECOND, 1, false),
        (SECOND, 2, false),
        (THIRD, 4, false),
        (THIRD, 5, true),
    ];

    fn find_in(
        open: &[(&'static str, u64, bool)],
        text: &str,
    ) -> Result<(&'static str, u64), String> {
        let address: Address = text.parse().map_err(|error| format!("{error}"))?;
        let mut sessions: Vec<&str> = open.iter().map(|(session, ..)| *session).collect();
        sessions.dedup();
        let candidates = open.iter().map(|&(session, id, is_secret)| Candidate {
            session,
            id: QuestionId(id),
            is_secret,
        });
        match address.find(candidates, sessions.len()) {
            Ok(found) => Ok((found.session, found.id.0)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn find(text: &str) -> Result<(&'static str, u64), String> {
        find_in(&OPEN, text)
    }

    /// Proves: TOOL-2 the-one-meant
    #[test]
    fn a_question_is_named_so_that_no_other_can_be_meant() {
        assert_eq!(find("1c9e0a55:2"), Ok((SECOND, 2)));
        assert_eq!(find("2b7d1c9e0a55:1"), Ok((FIRST, 1)));
        assert_eq!(find(&format!("{SECOND}:1")), Ok((SECOND, 1)));
        assert_eq!(find("00000003:5"), Ok((THIRD, 5)), "a secret that is named in full");
        for ambiguous in ["1", "1c9e0a55:1"] {
            let error = find(ambiguous).unwrap_err();
            assert!(error.contains(&format!("{FIRST}:1 or {SECOND}:1")), "{error}");
        }
        for missing in ["3", "01934f2a:1", "0a55:2", "3:4", &format!("{FIRST}:2")] {
            assert!(find(missing).unwrap_err().starts_with("no question"), "{missing}");
        }
        for nonsense in ["", "x", ":1", "0193:", "0193:x", "-1", "+1", "99999999999999999999999"] {
            assert!(nonsense.parse::<Address>().is_err(), "{nonsense}");
        }
    }

    /// Proves: TOOL-2 the-one-meant
    #[test]
    fn a_bare_number_is_good_for_a_single_session_and_no_secret() {
        let error = find("4").unwrap_err();
        assert!(error.contains("3 sessions are asking") && error.contains(THIRD), "{error}");
        let alone = &OPEN[3..];
        assert_eq!(find_in(alone, "4"), Ok((THIRD, 4)));
        let error = find_in(alone, "5").unwrap_err();
        assert!(error.contains("is about a secret"), "{error}");
        assert_eq!(find_in(alone, "00000003:5"), Ok((THIRD, 5)));
    }

    #[test]
    fn the_shown_name_finds_its_question_again() {
        for (session, id, _) in OPEN {
            let sessions = OPEN.iter().map(|(session, ..)| *session);
            let name = shown(sessions, session, QuestionId(id));
            assert_eq!(find(&name), Ok((session, id)), "{name}");
        }
        assert_eq!(shown([FIRST].into_iter(), FIRST, QuestionId(7)), "1c9e0a55:7");
        assert_eq!(shown(["s"].into_iter(), "s", QuestionId(7)), "s:7");
    }
}
