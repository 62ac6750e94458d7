//! Fields that their type alone does not describe, for `deserialize_with`.

use super::{GIVEN, LIST, OBJECT, TEXT};
use crate::json::field::some_text;
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde_json::Number;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

/// Reads a field that may be absent, but not null.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct Given<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Given<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value")
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_newtype_struct<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<Self::Value, D::Error> {
            T::deserialize(deserializer).map(Some)
        }
    }

    deserializer.deserialize_newtype_struct(GIVEN, Given(PhantomData))
}

/// Reads a flag that is false where it is absent; null is a fault.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    given_or_default(deserializer)
}

/// Reads a field that has its default where it is absent; null is a fault.
pub(crate) fn given_or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(given(deserializer)?.unwrap_or_default())
}

/// Reads a field that has its default where it is absent or null.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a whole number counted from 1, where there is one.
pub(crate) fn ordinal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match Option::deserialize(deserializer)? {
        Some(0) => Err(D::Error::invalid_value(
            Unexpected::Unsigned(0),
            &"1 or more",
        )),
        count => Ok(count),
    }
}

/// Reads a number between 0 and 1, where there is one.
pub(crate) fn share<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Number>, D::Error> {
    let share: Option<Number> = Option::deserialize(deserializer)?;
    match share.as_ref().and_then(Number::as_f64) {
        Some(value) if !(0.0..=1.0).contains(&value) => Err(D::Error::invalid_value(
            Unexpected::Float(value),
            &"between 0 and 1",
        )),
        _ => Ok(share),
    }
}

/// Reads an optional value that is written as a text, trimmed; null and blank
/// text read as absent.
pub(crate) fn unless_blank<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct UnlessBlank<T>(PhantomData<T>);

    impl<T: DeserializeOwned> Visitor<'_> for UnlessBlank<T> {
        type Value = Blankable<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(TEXT)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Blankable<T>, E> {
            let text = text.trim();
            if text.is_empty() {
                return Ok(Blankable(None));
            }
            T::deserialize(StrDeserializer::new(text)).map(|value| Blankable(Some(value)))
        }
    }

    struct Blankable<T>(Option<T>);

    impl<'de, T: DeserializeOwned> Deserialize<'de> for Blankable<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(UnlessBlank(PhantomData))
        }
    }

    let value: Option<Blankable<T>> = Option::deserialize(deserializer)?;
    Ok(value.and_then(|value| value.0))
}

/// A text that is not blank, trimmed.
#[derive(Debug)]
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(SomeText).map(Self)
    }
}

/// Reads a text that must be there, trimmed.
pub(crate) fn text<'de, D: Deserializer<'de>, T: From<String>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Text::deserialize(deserializer).map(|text| T::from(text.0))
}

/// Reads a list of texts, none blank.
pub(crate) fn texts<'de, D: Deserializer<'de>, T: From<String>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let texts: Vec<Text> = Vec::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|text| T::from(text.0)).collect())
}

struct SomeText;

impl Visitor<'_> for SomeText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text that is not blank")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        some_text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Reads a list of texts, none blank and each once; null reads as absent.
pub(crate) fn words<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeSet<String>, D::Error> {
    /// Reads the next word, so that its fault has its place.
    struct Next<'w>(&'w mut BTreeSet<String>);

    impl<'de> DeserializeSeed<'de> for Next<'_> {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            let word = deserializer.deserialize_str(SomeText)?;
            match self.0.contains(&word) {
                true => Err(D::Error::invalid_value(
                    Unexpected::Str(&word),
                    &"a text that appears once",
                )),
                false => {
                    self.0.insert(word);
                    Ok(())
                }
            }
        }
    }

    #[derive(Default)]
    struct Words(BTreeSet<String>);

    impl<'de> Visitor<'de> for Words {
        type Value = Self;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(LIST)
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
            while items.next_element_seed(Next(&mut self.0))?.is_some() {}
            Ok(self)
        }
    }

    impl<'de> Deserialize<'de> for Words {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_seq(Self::default())
        }
    }

    or_default(deserializer).map(|words: Words| words.0)
}

/// Reads an object whose keys may be alike once they are read; then the second
/// is a fault.
pub(crate) fn distinct<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    /// Reads the value of a key, so that a fault has the place of the entry.
    struct Next<'m, K, V>(K, &'m mut BTreeMap<K, V>);

    impl<'de, K: Ord, V: Deserialize<'de>> DeserializeSeed<'de> for Next<'_, K, V> {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            match self.1.insert(self.0, V::deserialize(deserializer)?) {
                Some(_) => Err(D::Error::custom(ALIKE)),
                None => Ok(()),
            }
        }
    }

    struct Distinct<K, V>(BTreeMap<K, V>);

    impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Distinct<K, V> {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(OBJECT)
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Self::Value, A::Error> {
            while let Some(key) = entries.next_key()? {
                entries.next_value_seed(Next(key, &mut self.0))?;
            }
            Ok(self.0)
        }
    }

    deserializer.deserialize_map(Distinct(BTreeMap::new()))
}

/// What is wrong with a name that reads like another one.
pub(crate) const ALIKE: &str = "duplicates another name after normalisation";

/// Reads a list of at least one text, none blank and each once.
pub(crate) fn some_words<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeSet<String>, D::Error> {
    let found = words(deserializer)?;
    match found.is_empty() {
        true => Err(missing("a list of at least one text")),
        false => Ok(found),
    }
}

/// Describes a value that must be there and is not.
pub(crate) fn missing<E: Error>(expected: &'static str) -> E {
    E::invalid_type(Unexpected::Unit, &expected)
}
