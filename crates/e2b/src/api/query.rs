//! Which sandboxes a list has.

use crate::error::ApiError;
use crate::percent;
use crate::store::KeptSandbox;
use axum::extract::Query;
use axum::http::Uri;
use jiff::Timestamp;
use serde::Deserialize;

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListQuery {
    /// Names and values as in a form, each encoded once more.
    metadata: Option<String>,
    /// Separated by commas.
    state: Option<String>,
    template: Option<String>,
    started_after: Option<Timestamp>,
    order: Option<Order>,
    limit: Option<usize>,
    /// The id that the page before ended with.
    next_token: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    Asc,
    Desc,
}

/// A page, and what to ask for the next one with.
pub(crate) type Page = (Vec<KeptSandbox>, Option<String>);

impl ListQuery {
    fn metadata(&self) -> Result<Vec<(String, String)>, ApiError> {
        let Some(text) = &self.metadata else { return Ok(Vec::new()) };
        let wrong = || ApiError::invalid("metadata: names and values as in a form");
        let uri: Uri = format!("/?{text}").parse().map_err(|_| wrong())?;
        let pairs: Query<Vec<(String, String)>> = Query::try_from_uri(&uri).map_err(|_| wrong())?;
        let decoded =
            |(name, value): (String, String)| (percent::decode(&name), percent::decode(&value));
        Ok(pairs.0.into_iter().map(decoded).collect())
    }

    /// Of those that are there, oldest first.
    pub(crate) fn page(&self, all: Vec<KeptSandbox>) -> Result<Page, ApiError> {
        let metadata = self.metadata()?;
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(ApiError::invalid(format!("limit: 1 to {MAX_LIMIT}")));
        }
        // Nothing here is ever paused.
        let is_running_wanted =
            self.state.as_ref().is_none_or(|states| states.split(',').any(|it| it == "running"));
        let is_wanted = |kept: &KeptSandbox| {
            is_running_wanted
                && metadata.iter().all(|(name, value)| kept.metadata.get(name) == Some(value))
                && self.template.as_ref().is_none_or(|template| *template == kept.template)
                && self.started_after.is_none_or(|time| kept.started_at > time)
        };
        let mut wanted: Vec<_> = all.into_iter().filter(is_wanted).collect();
        // E2B says the newest first, unless it is asked otherwise.
        let is_ascending = self.order == Some(Order::Asc);
        if !is_ascending {
            wanted.reverse();
        }
        let is_later = |kept: &KeptSandbox| {
            self.next_token
                .as_ref()
                .is_none_or(|token| (kept.id > *token) == is_ascending && kept.id != *token)
        };
        let mut rest = wanted.into_iter().filter(is_later);
        let page: Vec<_> = rest.by_ref().take(limit).collect();
        let next = rest.next().and(page.last().map(|last| last.id.clone()));
        Ok((page, next))
    }
}

#[cfg(test)]
mod tests {
    use super::{ListQuery, Order};
    use crate::store::KeptSandbox;

    fn sandboxes() -> Vec<KeptSandbox> {
        let sandbox = |number: u8| KeptSandbox {
            metadata: [("n m".to_owned(), format!("{}&", number % 2))].into(),
            ..KeptSandbox::example(&format!("id{number}"))
        };
        (0..5).map(sandbox).collect()
    }

    fn ids(query: &ListQuery) -> (Vec<String>, Option<String>) {
        let (page, next) = query.page(sandboxes()).unwrap();
        (page.into_iter().map(|kept| kept.id).collect(), next)
    }

    #[test]
    fn pages_follow_each_other_in_either_order() {
        let first = ListQuery { limit: Some(2), ..ListQuery::default() };
        assert_eq!(ids(&first), (vec!["id4".into(), "id3".into()], Some("id3".into())));
        let second = ListQuery { next_token: Some("id3".into()), ..first };
        assert_eq!(ids(&second), (vec!["id2".into(), "id1".into()], Some("id1".into())));
        let last = ListQuery { next_token: Some("id1".into()), ..second };
        assert_eq!(ids(&last), (vec!["id0".into()], None));
        let up = ListQuery { order: Some(Order::Asc), next_token: Some("id3".into()), ..last };
        assert_eq!(ids(&up), (vec!["id4".into()], None));
        assert!(ListQuery { limit: Some(0), ..up }.page(sandboxes()).is_err());
    }

    /// As `urlencode({quote(k): quote(v)})` makes it.
    #[test]
    fn metadata_is_compared_after_two_decodings() {
        let query = ListQuery { metadata: Some("n%2520m=1%2526".into()), ..ListQuery::default() };
        assert_eq!(ids(&query).0, ["id3", "id1"]);
        let none = ListQuery { state: Some("paused".into()), ..ListQuery::default() };
        assert!(ids(&none).0.is_empty());
    }
}
