use super::{LimitKind, Unit};
use crate::schema;
use serde_json::Value;

/// Where a key stands in the schema.
fn described<'s>(schema: &'s Value, key: &str) -> &'s Value {
    key.split('.').fold(schema, |section, name| &section["properties"][name])
}

/// Proves: POL-2 schema, POL-2 limit-keys
#[test]
fn every_limit_has_a_key_in_the_schema_that_is_described_by_the_table() {
    let schema = schema();
    for limit in LimitKind::ALL {
        assert_eq!(described(&schema, limit.key())["description"], limit.about(), "{limit:?}");
    }
}

#[test]
fn every_limit_is_found_by_its_name_alone() {
    for limit in LimitKind::ALL {
        assert_eq!(LimitKind::named(limit.name()), Some(limit));
        assert_eq!(LimitKind::named(limit.key()), None);
    }
    assert_eq!(LimitKind::named("of a later version"), None);
}

#[test]
fn a_value_is_shown_in_its_unit() {
    for (unit, value, shown) in [
        (Unit::Bytes, 512 << 20, "512m"),
        (Unit::BytesPerSecond, 50 << 20, "50m/s"),
        (Unit::OperationsPerSecond, 500, "500/s"),
        (Unit::Milliseconds, 90_000, "90s"),
        (Unit::MilliCpus, 1_500, "1.5 CPUs"),
        (Unit::CpuCount, 2, "2 CPUs"),
        (Unit::Count, 100, "100"),
    ] {
        assert_eq!(unit.show(value), shown);
    }
}
