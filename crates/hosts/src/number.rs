//! IPv4 addresses in every notation that resolvers accept (N07): decimal, octal, hexadecimal and with fewer
//! than four parts.
//!
//! The rules are those of the URL standard (WHATWG, "ends in a number", "IPv4 parser"), which agree with
//! `inet_aton(3)` where both accept. Text that ends in a number but is not an address is never a name.

use std::net::Ipv4Addr;

/// Whether the last label is a number. The text must have no trailing dot.
pub(crate) fn ends_in_number(ascii: &str) -> bool {
    let last = ascii.rsplit('.').next().unwrap_or(ascii);
    !last.is_empty()
        && (last.bytes().all(|b| b.is_ascii_digit()) || hex_digits(last).is_some_and(all_hex))
}

fn hex_digits(part: &str) -> Option<&str> {
    part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"))
}

fn all_hex(digits: &str) -> bool {
    digits.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(crate) fn parse_v4(ascii: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = ascii.split('.').map(parse_part).collect::<Option<_>>()?;
    let (last, bytes) = parts.split_last()?;
    if bytes.len() > 3 || bytes.iter().any(|byte| *byte > 255) {
        return None;
    }
    // The last part fills the remaining bytes.
    let room = 32 - 8 * u32::try_from(bytes.len()).ok()?;
    if u64::from(*last) >= 1 << room {
        return None;
    }
    let upper = bytes.iter().zip([24, 16, 8]).map(|(byte, shift)| byte << shift).sum::<u32>();
    Some(Ipv4Addr::from(upper | last))
}

fn parse_part(part: &str) -> Option<u32> {
    if let Some(digits) = hex_digits(part) {
        return match digits {
            "" => Some(0),
            _ if all_hex(digits) => u32::from_str_radix(digits, 16).ok(),
            _ => None,
        };
    }
    // `from_str_radix` accepts a leading `+`.
    if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match part.strip_prefix('0') {
        None | Some("") => part.parse().ok(),
        Some(octal) => u32::from_str_radix(octal, 8).ok(),
    }
}

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;
