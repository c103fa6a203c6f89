//! How often to look: a time with its unit, within bounds in which looking costs little.

use anyhow::bail;
use std::str::FromStr;
use std::time::Duration;

const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval(Duration);

impl Interval {
    pub(crate) fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Interval {
    type Err = anyhow::Error;

    /// A plain number is seconds.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let seconds = match unit {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" => 60.0,
            _ => bail!("`{unit}` is not a unit of time: use ms, s or m"),
        };
        let duration = number
            .parse::<f64>()
            .ok()
            .and_then(|number| Duration::try_from_secs_f64(number * seconds).ok());
        match duration {
            Some(duration) if (MIN_INTERVAL..=MAX_INTERVAL).contains(&duration) => {
                Ok(Self(duration))
            }
            Some(_) => bail!("it must be between 100ms and 60m"),
            None => bail!("write a number and a unit, such as 500ms or 2s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;
    use std::time::Duration;

    #[test]
    fn times_are_read_with_their_units_and_held_in_bounds() {
        let read = |text: &str| text.parse::<Interval>().map(Interval::duration);
        for (text, millis) in [("500ms", 500), ("2", 2000), ("0.5s", 500), ("1m", 60_000)] {
            assert_eq!(read(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for text in ["", "s", "0", "-1", "NaN", "inf", "50ms", "2h", "61m", "1e99", "1 s"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
