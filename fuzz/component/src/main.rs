//! Arbitrary manifests and bytes, to a component or an error: in bounded time, and the loaded
//! component is the one in the input. An input is a manifest, a zero byte, and the bytes of the
//! component.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use strowger_wasm::load::Digest;
use strowger_wasm::{Directory, Host, HostLimits, LoadError, Manifest};

/// Maximum length of a component; short, so that the limit is hit and compilations are quick.
const LONGEST: usize = 64 << 10;

fuzz_target!(|input: &[u8]| {
    let (manifest, bytes) = match input.iter().position(|byte| *byte == 0) {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &[][..]),
    };
    let Ok(manifest) = std::str::from_utf8(manifest) else {
        return;
    };
    let manifest = match Manifest::parse(manifest) {
        Ok(manifest) => manifest,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "says what is wrong");
            return;
        }
    };
    let name = manifest.component.name.clone();
    let limits = manifest.limits.clone();
    let image = match host().load_blocking(bytes, manifest) {
        Ok(image) => image,
        Err(LoadError::Manifest(error)) => panic!("it was a manifest: {error}"),
        Err(error) => {
            assert!(!error.to_string().is_empty(), "says what is wrong");
            return;
        }
    };
    assert!(bytes.len() <= LONGEST, "the host takes no longer one");
    assert_eq!(image.digest(), Digest::of(bytes), "of these bytes");
    assert_eq!(image.manifest().component.name, name, "with this manifest");
    assert_eq!(image.manifest().limits, limits, "and its limits");
    let args = host().component(image, &Directory::new());
    assert_eq!(args.expect("there is room").name(), name);
    assert_eq!(host().live(), 0, "room is given back");
});

/// Returns the host that all inputs share. It caches no compiled code, so that its memory does not
/// grow.
fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| {
        let mut limits = HostLimits::default();
        limits.instances = 4;
        limits.waiting = 2;
        limits.slot = 1 << 20;
        limits.component = LONGEST;
        limits.cached = 0;
        Host::new(limits).expect("there is a thread to be had")
    })
}
