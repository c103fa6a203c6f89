//! From where in the log: a time, how long ago, or the number of a record that was seen already.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use palisade_record::Record;
use std::str::FromStr;

use crate::commands::sessions::Lasting;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    Time(Timestamp),
    /// Records after the one with this number.
    Cursor(u64),
}

impl Since {
    pub(super) fn includes(self, record: &Record) -> bool {
        match self {
            Self::Time(time) => record.event.timestamp >= time,
            Self::Cursor(seen) => record.seq > seen,
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Ok(seen) = text.parse() {
            return Ok(Self::Cursor(seen));
        }
        if let Ok(ago) = text.parse::<Lasting>() {
            let ago = i64::try_from(ago.milliseconds()).unwrap_or(i64::MAX);
            let time = Timestamp::now().checked_sub(SignedDuration::from_millis(ago));
            // Longer ago than any clock says: everything.
            return Ok(Self::Time(time.unwrap_or(Timestamp::MIN)));
        }
        if let Ok(time) = text.parse() {
            return Ok(Self::Time(time));
        }
        // Without a zone it is meant as the records are shown.
        let local: DateTime = text.parse().map_err(|_| {
            "not a time (2026-11-18T09:30), how long ago (10m), or the number of a record (`seq` in JSON)".to_owned()
        })?;
        let zoned = local.to_zoned(TimeZone::system()).map_err(|error| error.to_string())?;
        Ok(Self::Time(zoned.timestamp()))
    }
}

#[cfg(test)]
mod tests {
    use super::Since;
    use jiff::{SignedDuration, Timestamp};

    /// Proves: AUD-2 follow
    #[test]
    fn a_time_an_age_and_a_number_are_told_apart() {
        assert_eq!("41".parse(), Ok(Since::Cursor(41)));
        let time = "2026-11-18T09:30:00Z";
        assert_eq!(time.parse(), Ok(Since::Time(time.parse().unwrap())));
        let Ok(Since::Time(ago)) = "10m".parse() else { panic!() };
        let passed = Timestamp::now().duration_since(ago);
        assert!(passed >= SignedDuration::from_mins(10) && passed < SignedDuration::from_mins(11));
        assert!(matches!("2026-11-18 09:30".parse(), Ok(Since::Time(_))));
        assert!(matches!("2026-11-18".parse(), Ok(Since::Time(_))));
        assert!("yesterday".parse::<Since>().is_err());
    }
}
