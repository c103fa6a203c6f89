//! What the server counts of itself.

use axum::http::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The labels of `palisade_service_requests_total`.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

#[derive(Debug)]
pub(crate) struct Counters {
    since: Instant,
    requests: [AtomicU64; CLASSES.len()],
    denied: AtomicU64,
    connections: AtomicU64,
    made: AtomicU64,
    warm_claimed: AtomicU64,
    warm_missed: AtomicU64,
    warm_failed: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            requests: Default::default(),
            denied: AtomicU64::default(),
            connections: AtomicU64::default(),
            made: AtomicU64::default(),
            warm_claimed: AtomicU64::default(),
            warm_missed: AtomicU64::default(),
            warm_failed: AtomicU64::default(),
        }
    }
}

impl Counters {
    pub(crate) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        self.requests[class].fetch_add(1, Ordering::Relaxed);
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            self.denied.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn sandbox_made(&self) {
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    /// A request could have had a sandbox that was prepared.
    pub(crate) fn warm_asked(&self, is_claimed: bool) {
        let counter = if is_claimed { &self.warm_claimed } else { &self.warm_missed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn warm_failed(&self) {
        self.warm_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// In the text format of Prometheus.
    pub(crate) fn text(&self, running: usize, prepared: usize) -> String {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, lines: &[(String, u64)]| {
            text.push_str(&format!("# HELP palisade_service_{name} {help}\n"));
            text.push_str(&format!("# TYPE palisade_service_{name} {kind}\n"));
            for (labels, value) in lines {
                text.push_str(&format!("palisade_service_{name}{labels} {value}\n"));
            }
        };
        let plain = |value: u64| [(String::new(), value)];
        metric(
            "uptime_seconds",
            "gauge",
            "Since the server was started.",
            &plain(self.since.elapsed().as_secs()),
        );
        let answered = CLASSES.iter().zip(&self.requests);
        let answered: Vec<_> = answered
            .map(|(class, count)| (format!("{{status=\"{class}\"}}"), number(count)))
            .collect();
        metric(
            "requests_total",
            "counter",
            "Requests that were answered, by the class of their status.",
            &answered,
        );
        metric(
            "denied_total",
            "counter",
            "Requests that were not accepted: wrong user, token, Host or Origin, or denied by a policy.",
            &plain(number(&self.denied)),
        );
        metric(
            "connections_total",
            "counter",
            "Connections that were accepted.",
            &plain(number(&self.connections)),
        );
        metric(
            "sandboxes_made_total",
            "counter",
            "Sandboxes that this server made.",
            &plain(number(&self.made)),
        );
        metric(
            "warm_sandboxes",
            "gauge",
            "Sandboxes that are prepared and wait for a request.",
            &plain(prepared as u64),
        );
        let asked = [("claimed", &self.warm_claimed), ("missed", &self.warm_missed)];
        let asked = asked.map(|(word, count)| (format!("{{result=\"{word}\"}}"), number(count)));
        metric(
            "warm_requests_total",
            "counter",
            "Requests for a sandbox, by whether one was prepared, while the server prepares any.",
            &asked,
        );
        metric(
            "warm_failures_total",
            "counter",
            "Sandboxes that could not be prepared.",
            &plain(number(&self.warm_failed)),
        );
        metric(
            "sandboxes_running",
            "gauge",
            "Sessions of this user that run, whoever made them.",
            &plain(running as u64),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Counters;
    use axum::http::StatusCode;

    #[test]
    fn every_series_is_there_from_the_beginning() {
        let counters = Counters::default();
        counters.answered(StatusCode::CREATED);
        counters.answered(StatusCode::UNAUTHORIZED);
        let text = counters.text(3, 2);
        for line in [
            "palisade_service_requests_total{status=\"2xx\"} 1",
            "palisade_service_requests_total{status=\"4xx\"} 1",
            "palisade_service_requests_total{status=\"5xx\"} 0",
            "palisade_service_denied_total 1",
            "palisade_service_sandboxes_running 3",
            "palisade_service_warm_sandboxes 2",
            "palisade_service_warm_requests_total{result=\"claimed\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }
}
