//! A component that computes all the time.

use std::fs;

use crate::binary::strowger;
use crate::files::Files;

/// Spins `TURNS` times for each message, and sends itself the next one.
const HOG: &str = r#"(module
  (import "strowger:component/messaging@0.1.0" "resolve" (func $resolve (param i32 i32 i32)))
  (import "strowger:component/messaging@0.1.0" "send" (func $send (param i64 i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "NAME")
  (func $spin (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "strowger:component/actor@0.1.0#init")
    (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#handle")
    (param i32 i64 i32 i32) (result i32)
    (call $resolve (i32.const 512) (i32.const 6) (i32.const 64))
    (call $spin (i32.const TURNS))
    (call $send (i64.load (i32.const 72)) (i32.const 0) (i32.const 0) (i32.const 96))
    (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#stop"))
  (func (export "strowger:component/actor@0.1.0#health") (result i32) (i32.const 16)))"#;

impl Files {
    /// Builds a component from a core module, with a manifest; returns the path of the manifest.
    fn component(&self, name: &str, module: &str, more: &str) -> String {
        let (core, built) = (self.place("core.wasm"), self.place(&format!("{name}.wasm")));
        fs::write(&core, wat::parse_str(module).expect("it parses"))
            .expect("the file is accessible");
        let ran = strowger(["component", "build", &core, "--out", &built]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        self.manifest(name, &format!("{name}.wasm"), more)
    }

    /// A hog that spins this often for each message: its name, and the path of its manifest.
    pub(crate) fn hog(&self, number: usize, turns: u32, more: &str) -> (String, String) {
        let name = format!("hog-{number:02}");
        let text = HOG.replace("NAME", &name);
        let text = text.replace("TURNS", &turns.to_string());
        let more = format!("[grant]\nsend = [{name:?}]\n{more}");
        (name.clone(), self.component(&name, &text, &more))
    }
}
