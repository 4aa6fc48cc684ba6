//! Durations as arguments: `500ms`, `1.5s`, `2m`, `1h`; a number alone is in seconds.

pub(crate) use strowger::parse_duration as parse;
