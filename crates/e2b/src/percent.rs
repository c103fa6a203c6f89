//! Percent-encoding (RFC 3986, 2.1).

/// What is no encoding stays as it is.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let encoded = (*byte == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let value = encoded
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(value.unwrap_or(*byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn what_is_encoded_is_decoded_and_the_rest_stays() {
        assert_eq!(decode("a%20b%C3%A9%22"), "a bé\"");
        assert_eq!(decode("100%, %zz, %4"), "100%, %zz, %4");
    }
}
