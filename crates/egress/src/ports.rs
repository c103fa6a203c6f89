//! What a port is usually for. A hint only: what a connection speaks is seen in its first bytes.

pub(crate) fn is_usual_for_http(port: u16) -> bool {
    matches!(port, 80 | 3000 | 5000 | 8000..=8099 | 8888)
}

pub(crate) fn is_usual_for_tls(port: u16) -> bool {
    matches!(port, 443 | 8443)
}
