//! One cell.
use serde::{Serialize, Serializer};

/// The content of a cell.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Nothing: not measured, or not stated. `null` in JSON, empty in CSV, `-` in a table.
    Null,
    /// Words.
    Text(String),
    /// A count.
    Count(u64),
    /// A measured or computed number. NaN and infinity count as `Null`.
    Real(f64),
    /// Yes or no.
    Bool(bool),
    /// Several values: an array in JSON, with commas between them elsewhere.
    List(Vec<Value>),
}

impl Value {
    /// `real` rounded to a multiple of `1 / scale`: it keeps the meaningful digits, so that the output does not depend
    /// on the last bit.
    pub fn rounded(real: f64, scale: f64) -> Value {
        Value::Real((real * scale).round() / scale)
    }

    /// Whether the cell is empty, or its number is not finite.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null) || matches!(self, Value::Real(real) if !real.is_finite())
    }

    /// The value for programs, as in CSV; empty for `Null`.
    pub fn plain(&self) -> String {
        match self {
            _ if self.is_null() => String::new(),
            Value::Null => String::new(),
            Value::Text(text) => text.clone(),
            Value::Count(count) => count.to_string(),
            Value::Real(real) => real.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::List(values) => {
                let values: Vec<String> = values.iter().map(Value::plain).collect();
                values.join(", ")
            }
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Text(text) => to.serialize_str(text),
            Value::Count(count) => to.serialize_u64(*count),
            Value::Real(real) if real.is_finite() => to.serialize_f64(*real),
            Value::Bool(flag) => to.serialize_bool(*flag),
            Value::List(values) => to.collect_seq(values),
            Value::Null | Value::Real(_) => to.serialize_unit(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Value::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Value::Count(u64::from(count))
    }
}

impl From<f64> for Value {
    fn from(real: f64) -> Self {
        Value::Real(real)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
