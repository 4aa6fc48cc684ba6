//! The guarantees of components and their host, with real WebAssembly on virtual time.
//!
//! The guests are text: see [`kit`].

#[cfg(target_os = "linux")]
mod address_space;
mod audit;
mod caching;
mod exposed;
#[cfg(unix)]
mod files;
mod fixtures;
mod hostile;
mod kit;
mod kv;
mod lifecycle;
mod limits;
mod loading;
mod messaging;
mod model;
mod passivation;
mod poison;
mod registry;
mod schema;
mod stored;
mod streams;
mod time;
mod trust;
