//! The usual protocol of a port. Only a hint: the first bytes of a connection show its protocol.

pub(crate) fn is_usual_for_http(port: u16) -> bool {
    matches!(port, 80 | 3000 | 5000 | 8000..=8099 | 8888)
}

pub(crate) fn is_usual_for_tls(port: u16) -> bool {
    matches!(port, 443 | 8443)
}
