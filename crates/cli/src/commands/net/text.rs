//! The view of a run's network as lines. Everything that could come from inside is escaped here.

use super::view::{HostSums, Mark, View, bytes, place};
use crate::commands::net::view::Happened;
use crate::output::{Paint, Style};
use palisade_record::escape;

/// Of what happened, so much is shown below the sums.
const LAST_SHOWN: usize = 15;

/// Sums for each host, names, and what happened last.
pub(super) fn page(view: &View, paint: Paint) -> String {
    let mut text = sums(view, paint);
    if !view.last.is_empty() {
        text.push_str("\nlast:\n");
        let skipped = view.last.len().saturating_sub(LAST_SHOWN);
        for happened in view.last.iter().skip(skipped) {
            text.push_str(&line(happened, paint));
        }
    }
    text
}

pub(super) fn line(happened: &Happened, paint: Paint) -> String {
    let style = match happened.mark {
        Mark::Good => Style::Green,
        Mark::Bad => Style::Red,
        Mark::Plain => Style::Plain,
    };
    let time = happened.at.strftime("%H:%M:%S.%3f");
    let what = paint.with(style, &format!("{:<8}", happened.what));
    format!("{time}  {what}  {}\n", escape::text(&happened.text))
}

pub(super) fn sums(view: &View, paint: Paint) -> String {
    let state = if view.is_over { "over" } else { "running" };
    let mut text = format!("run {} ({state}), network {}", view.session, view.network);
    if !view.command.is_empty() {
        text += &format!(": {}", escape::text(&view.command));
    }
    text.push('\n');
    if view.hosts.is_empty() {
        text.push_str("no connection was attempted\n");
    } else {
        text += &table(&view.hosts, paint);
    }
    let names = view.names;
    if names.answered + names.refused > 0 {
        text += &format!("names: {} answered, {} not", names.answered, names.refused);
        if names.suspicious > 0 {
            let much = format!("{} look like tunnelling", names.suspicious);
            text += &format!(", {}", paint.with(Style::Red, &much));
        }
        text.push('\n');
    }
    text
}

fn table(hosts: &[HostSums], paint: Paint) -> String {
    let shown = |host: &HostSums| escape::text(&place(&host.host, host.port)).into_owned();
    let wide = hosts.iter().map(|host| shown(host).chars().count()).max().unwrap_or(0).clamp(4, 60);
    let mut text = format!(
        "{:<wide$}  {:>5}  {:>11}  {:>10}  {:>10}  {:>6}\n",
        "HOST", "OPEN", "CONNECTIONS", "SENT", "RECEIVED", "DENIED"
    );
    // What was reached must not be looked for below a thousand refusals.
    let (reached, others): (Vec<_>, Vec<_>) = hosts.iter().partition(|host| host.connections > 0);
    for host in reached.into_iter().chain(others) {
        let denied = format!("{:>6}", count(host.denied));
        let denied = if host.denied > 0 { paint.with(Style::Red, &denied) } else { denied };
        text += &format!(
            "{:<wide$}  {:>5}  {:>11}  {:>10}  {:>10}  {denied}",
            shown(host),
            count(host.open),
            count(host.connections),
            if host.connections > 0 { bytes(host.sent) } else { "-".to_owned() },
            if host.connections > 0 { bytes(host.received) } else { "-".to_owned() },
        );
        if let Some(flag) = host.allow.as_ref().filter(|_| host.denied > 0) {
            text += &format!("  allow with {}", escape::text(flag));
        }
        text.push('\n');
    }
    text
}

fn count(number: u64) -> String {
    if number == 0 { "-".to_owned() } else { number.to_string() }
}
