//! How long something lasts, as typed and as told.

use anyhow::bail;
use std::str::FromStr;
use std::time::Duration;

/// A time with its unit; a plain number is seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lasting(pub(crate) Duration);

impl Lasting {
    pub(crate) fn milliseconds(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl FromStr for Lasting {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let milliseconds = match unit {
            "ms" => 1,
            "" | "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => bail!("`{unit}` is not a unit of time: use ms, s, m, h or d"),
        };
        match number.parse::<u64>().ok().and_then(|number| number.checked_mul(milliseconds)) {
            Some(time) => Ok(Self(Duration::from_millis(time))),
            None => bail!("write a whole number and a unit, such as 90s, 30m or 8h"),
        }
    }
}

/// The two largest units of a time.
pub(crate) fn shown(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Lasting, shown};

    #[test]
    fn a_time_has_a_unit_and_a_plain_number_is_seconds() {
        for (text, seconds) in [("90", 90), ("2s", 2), ("3m", 180), ("1h", 3600), ("2d", 172_800)] {
            assert_eq!(text.parse::<Lasting>().unwrap().0, Duration::from_secs(seconds), "{text}");
        }
        assert_eq!("500ms".parse::<Lasting>().unwrap().0, Duration::from_millis(500));
        for wrong in ["", "h", "-1", "1.5h", "1w", "99999999999999999999"] {
            assert!(wrong.parse::<Lasting>().is_err(), "{wrong}");
        }
        assert_eq!(
            [999, 61_000, 3_661_000, 90_000_000].map(shown),
            ["0s", "1m01s", "1h01m", "1d01h"]
        );
    }
}
