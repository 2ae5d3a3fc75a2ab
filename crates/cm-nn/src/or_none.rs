//! Optional settings for files: nothing is written as `"none"`, so that a file laid over other
//! settings can switch something off.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Settings {
//!     #[serde(default, with = "cm_nn::or_none")]
//!     clip: Option<f32>,
//! }
//!
//! let off: Settings = toml::from_str("clip = 'none'")?;
//! let on: Settings = toml::from_str("clip = 0.5")?;
//! assert_eq!((off.clip, on.clip), (None, Some(0.5)));
//! assert_eq!(toml::to_string(&off).unwrap(), "clip = \"none\"\n");
//! # Ok::<(), toml::de::Error>(())
//! ```

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const NONE: &str = "none";

/// Writes the setting, or `"none"`.
pub fn serialize<T: Serialize, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => NONE.serialize(serializer),
    }
}

/// Reads a number or a table, or `"none"`.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(OrNone(PhantomData))
}

struct OrNone<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for OrNone<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "a value or \"{NONE}\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if text == NONE { Ok(None) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        T::deserialize(number.into_deserializer()).map(Some)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        T::deserialize(number.into_deserializer()).map(Some)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        T::deserialize(number.into_deserializer()).map(Some)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}
