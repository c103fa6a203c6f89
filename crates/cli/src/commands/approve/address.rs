//! How a question is named on a command line: `3`, or `01934f2a:3`.
//!
//! A name that fits two questions is an error; the wrong one must not be answered.

use anyhow::{Context, anyhow, bail};
use palisade_ask::QuestionId;
use palisade_record::escape;
use std::str::FromStr;

/// Characters of a session's name that are shown at least: enough to be told apart by an eye.
const SHORTEST_PREFIX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The beginning of a session's name.
    prefix: Option<String>,
    id: QuestionId,
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (prefix, number) = match text.rsplit_once(':') {
            Some(("", _)) => bail!("there is no session before the `:`"),
            Some((prefix, number)) => (Some(prefix.to_owned()), number),
            None => (None, text),
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            bail!("a question is named by a number, or by SESSION:NUMBER");
        }
        let id =
            number.parse().map_err(|_| anyhow!("`{number}` is not the number of a question"))?;
        Ok(Self { prefix, id: QuestionId(id) })
    }
}

impl Address {
    /// The one question that is meant, among those that are open.
    pub(crate) fn find<'a>(
        &self,
        open: impl Iterator<Item = (&'a str, QuestionId)>,
    ) -> anyhow::Result<(&'a str, QuestionId)> {
        let is_meant = |session: &str, id| {
            let has_prefix =
                self.prefix.as_deref().is_none_or(|prefix| session.starts_with(prefix));
            id == self.id && has_prefix
        };
        let mut found = open.filter(|(session, id)| is_meant(session, *id));
        let first = found.next().with_context(|| {
            format!("no question {self} is open; `--json` lists those that are")
        })?;
        let others: Vec<String> =
            found.map(|(session, _)| format!("{session}:{}", self.id)).collect();
        if !others.is_empty() {
            bail!(
                "{self} may be {}:{} or {}; say which session",
                escape::text(first.0),
                self.id,
                escape::text(&others.join(" or "))
            );
        }
        Ok(first)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(prefix) = &self.prefix {
            write!(f, "{prefix}:")?;
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
        .map(|other| session.chars().zip(other.chars()).take_while(|(a, b)| a == b).count())
        .max()
        .unwrap_or(0);
    let length = SHORTEST_PREFIX.max(shared + 1);
    let prefix: String = session.chars().take(length).collect();
    format!("{prefix}:{id}")
}

#[cfg(test)]
mod tests {
    use super::{Address, QuestionId, shown};

    const OPEN: [(&str, QuestionId); 3] = [
        ("01934f2a-1111", QuestionId(1)),
        ("01934f2a-2222", QuestionId(1)),
        ("01934f2a-2222", QuestionId(2)),
    ];

    fn find(text: &str) -> Result<(&'static str, u64), String> {
        let address: Address = text.parse().map_err(|error| format!("{error}"))?;
        match address.find(OPEN.into_iter()) {
            Ok((session, id)) => Ok((session, id.0)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_question_is_named_so_that_no_other_can_be_meant() {
        assert_eq!(find("2"), Ok(("01934f2a-2222", 2)));
        assert_eq!(find("01934f2a-1:1"), Ok(("01934f2a-1111", 1)));
        assert_eq!(find("0193:2"), Ok(("01934f2a-2222", 2)));
        for ambiguous in ["1", "0193:1"] {
            let error = find(ambiguous).unwrap_err();
            assert!(error.contains("01934f2a-1111:1 or 01934f2a-2222:1"), "{error}");
        }
        for missing in ["3", "0194:1", "01934f2a-1111:2"] {
            assert!(find(missing).unwrap_err().starts_with("no question"), "{missing}");
        }
        for nonsense in ["", "x", ":1", "0193:", "0193:x", "-1", "+1", "99999999999999999999999"] {
            assert!(nonsense.parse::<Address>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn the_shown_name_finds_its_question_again() {
        for (session, id) in OPEN {
            let name = shown(OPEN.iter().map(|(session, _)| *session), session, id);
            assert_eq!(find(&name), Ok((session, id.0)), "{name}");
        }
        assert_eq!(
            shown(["01934f2a-1111"].into_iter(), "01934f2a-1111", QuestionId(7)),
            "01934f2a:7"
        );
    }
}
