//! Files, programs and streams through their actors.

mod files;
mod programs;
mod streams;
