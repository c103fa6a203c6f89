//! What was counted, as data for another format than text. Only what happened: a delta of zero says nothing.

use super::Metrics;
use super::table::{Shape, TABLE, Unit};

/// One metric, with everything that was counted of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// As in the text for Prometheus.
    pub name: &'static str,
    pub help: &'static str,
    pub unit: Measured,
    pub points: Vec<Point>,
}

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    Times,
    Bytes,
    Seconds,
}

/// One combination of labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub labels: Vec<(&'static str, String)>,
    pub data: Data,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A whole number.
    Count(u64),
    /// A counted time.
    Seconds(f64),
    Histogram {
        /// Upper bounds; values equal to one are below it.
        bounds: Vec<f64>,
        /// One more than bounds: of each bucket alone.
        buckets: Vec<u64>,
        sum: f64,
    },
}

impl Metrics {
    /// Everything that is not zero, in the order of the table.
    pub fn measures(&self) -> Vec<Measure> {
        let measures = TABLE.iter().map(|family| {
            let unit = match family.unit {
                Unit::Times => Measured::Times,
                Unit::Bytes => Measured::Bytes,
                Unit::Microseconds => Measured::Seconds,
            };
            let value = |count: u64| in_unit(family.unit, count);
            let points = match &family.shape {
                Shape::Counter => {
                    let counted = self.counters.get(family.name).into_iter().flatten();
                    let counted = counted.filter(|(_, count)| **count > 0);
                    let point = |(values, count): (&Vec<String>, &u64)| {
                        let names = family.labels.iter().map(|label| label.name);
                        let data = match family.unit {
                            Unit::Microseconds => Data::Seconds(value(*count)),
                            Unit::Times | Unit::Bytes => Data::Count(*count),
                        };
                        Point { labels: names.zip(values.iter().cloned()).collect(), data }
                    };
                    counted.map(point).collect()
                }
                Shape::Histogram(bounds) => {
                    let observed = self.histograms.get(family.name).into_iter();
                    let data = observed.map(|histogram| Data::Histogram {
                        bounds: bounds.iter().map(|bound| value(*bound)).collect(),
                        buckets: histogram.buckets.clone(),
                        sum: value(histogram.sum),
                    });
                    data.map(|data| Point { labels: Vec::new(), data }).collect()
                }
            };
            Measure { name: family.name, help: family.help, unit, points }
        });
        measures.filter(|measure| !measure.points.is_empty()).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 microseconds or bytes")]
fn in_unit(unit: Unit, value: u64) -> f64 {
    match unit {
        Unit::Microseconds => value as f64 / 1e6,
        Unit::Times | Unit::Bytes => value as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::{Data, Measured};
    use crate::event::{Destroyed, EventKind, Executed};
    use crate::metrics::Metrics;

    #[test]
    fn only_what_happened_is_a_point() {
        let mut metrics = Metrics::default();
        assert_eq!(metrics.measures(), []);
        metrics.hear(&EventKind::SandboxExecuted(Executed { pid: None, setup_us: 2_500 }));
        metrics.hear(&EventKind::SandboxDestroyed(Destroyed { duration_ms: 1_500 }));
        metrics.telemetry_lost(0, 3);
        let measures = metrics.measures();
        let names: Vec<&str> = measures.iter().map(|measure| measure.name).collect();
        assert_eq!(
            names,
            [
                "palisade_sandbox_lifetime_seconds",
                "palisade_setup_seconds",
                "palisade_cleanups_total",
                "palisade_telemetry_lost_total"
            ]
        );
        let setup = &measures[1];
        assert_eq!(setup.unit, Measured::Seconds);
        let Data::Histogram { bounds, buckets, sum } = &setup.points[0].data else {
            panic!("{setup:?}")
        };
        assert_eq!((bounds[1], buckets[1], buckets.len()), (0.0025, 1, bounds.len() + 1));
        assert!((sum - 0.0025).abs() < 1e-9);
        let lost = &measures[3].points;
        assert_eq!(lost[0].labels, [("reason", "not-sent".to_owned())]);
        assert_eq!((lost.len(), &lost[0].data), (1, &Data::Count(3)));
    }
}
