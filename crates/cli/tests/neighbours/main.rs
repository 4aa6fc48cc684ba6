//! Components that compute all the time, and their neighbours on a node: sessions, users of the
//! control socket, and the shutdown of the node. These are real processes on the real clock, so
//! nothing else may run beside these tests: they have a program of their own.

#[path = "../strowger/binary.rs"]
mod binary;
#[path = "../strowger/demo_process.rs"]
#[expect(dead_code, reason = "other tests ask a demo for more")]
mod demo_process;
#[path = "../strowger/files.rs"]
mod files;
#[path = "../../../pfcp/tests/others/guarded.rs"]
#[allow(dead_code, reason = "the other test program uses the rest")]
mod guarded;
mod hog;
mod node;
#[path = "../strowger/running.rs"]
#[expect(dead_code, reason = "other tests ask a node for more")]
mod running;
mod sessions;
