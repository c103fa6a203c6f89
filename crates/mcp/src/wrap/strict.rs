//! Messages of a server that is not trusted, read so that no reader can understand something else: which of two members of one name
//! counts, and whether `Tools` is `tools`, differs between programs.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What a message is made of.
pub(super) const MESSAGE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
/// What a list of tools is made of.
pub(super) const TOOL_LIST: &[&str] = &["tools", "nextCursor"];

/// Nothing that has two members of one name, wherever it is.
pub(super) fn parse(line: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let value = Unambiguous.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Whether a member is called almost like one of these: some programs do not distinguish them.
pub(super) fn has_lookalike(members: &Map<String, Value>, names: &[&str]) -> bool {
    members.keys().any(|key| {
        !names.contains(&key.as_str()) && names.iter().any(|name| folded(name) == folded(key))
    })
}

/// Also the characters whose capital is that of a letter, such as U+017F.
fn folded(name: &str) -> String {
    name.to_uppercase().to_lowercase()
}

struct Unambiguous;

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a message")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("no number"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = from.next_element_seed(Unambiguous)? {
            all.push(one);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let value = from.next_value_seed(Unambiguous)?;
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("two members have one name"));
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::{TOOL_LIST, has_lookalike, parse};
    use serde_json::Value;

    #[test]
    fn what_can_be_read_in_two_ways_is_not_read() {
        let plain = r#"{"a":[1,-2,1.5,null,true,"x"],"b":{"a":{}}}"#;
        assert_eq!(parse(plain.as_bytes()).unwrap().to_string(), plain);
        for text in [r#"{"a":1,"a":2}"#, r#"{"r":{"a":1,"a":2}}"#, r#"{"a":1,"\u0061":2}"#, "1 2"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        for (name, is_alike) in
            [("tools", false), ("Tools", true), ("tool\u{17f}", true), ("x", false)]
        {
            let members = [(name.to_owned(), Value::Null)].into_iter().collect();
            assert_eq!(has_lookalike(&members, TOOL_LIST), is_alike, "{name}");
        }
    }
}
