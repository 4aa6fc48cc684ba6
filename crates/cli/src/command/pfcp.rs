//! `strowger pfcp`: reads, writes and sends PFCP messages.

mod audit;
mod decode;
mod dictionary;
mod diff;
mod encode;
pub(crate) mod hex;
mod listing;
pub(super) mod load;
mod peer;
mod replay;
mod serve;
mod source;
mod time;
mod torture;

use clap::Subcommand;

use crate::exit::Done;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prints the messages of a capture or of hex text.
    Decode(decode::Args),
    /// Says what two messages or captures say differently.
    Diff(diff::Args),
    /// Writes octets of what `decode --json` prints.
    Encode(encode::Args),
    /// Sends the requests of a capture to a live node and compares the answers.
    Replay(replay::Args),
    /// Loads a node with sessions, as an SMF does.
    Load(load::Args),
    /// Serves as a UPF that refuses, delays, drops and restarts as it is told.
    Serve(serve::Args),
    /// Sends bad input to any node, and says whether it answers as the specification says.
    Torture(torture::Args),
    /// Compares what a load was told with what a running node has.
    Audit(audit::Args),
    /// Lists the sessions of a running node.
    Sessions(listing::SessionArgs),
    /// Lists the associations of a running node.
    Associations(listing::AssociationArgs),
    /// Lists the packet flow descriptions that peers gave a running node.
    Pfds(peer::PfdArgs),
    /// Asks a peer of a running node to release its association.
    Release(peer::ReleaseArgs),
    /// Reports a path of the user plane to a peer of a running node.
    Report(peer::ReportArgs),
}

pub(crate) fn run(command: Command, output: &mut Output) -> Done {
    match command {
        Command::Decode(args) => decode::run(&args, output),
        Command::Diff(args) => diff::run(&args, output),
        Command::Encode(args) => encode::run(&args, output),
        Command::Replay(args) => replay::run(&args, output),
        Command::Load(args) => load::run(&args, output),
        Command::Serve(args) => serve::run(&args, output),
        Command::Torture(args) => torture::run(&args, output),
        Command::Audit(args) => audit::run(&args, output),
        Command::Sessions(args) => listing::sessions(&args, output),
        Command::Associations(args) => listing::associations(&args, output),
        Command::Pfds(args) => peer::pfds(&args, output),
        Command::Release(args) => peer::release(&args, output),
        Command::Report(args) => peer::report(&args, output),
    }
}
