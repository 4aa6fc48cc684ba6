//! `strowger pfcp`: decodes, encodes and sends PFCP messages.

mod audit;
mod decode;
mod dictionary;
mod diff;
mod encode;
pub(crate) mod hex;
mod listing;
pub(super) mod load;
mod peer;
mod profile;
mod replay;
mod serve;
mod source;
pub(crate) mod time;
mod torture;

use clap::Subcommand;

use crate::exit::CliResult;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum PfcpCommand {
    /// Prints the messages of a capture or of hex text.
    Decode(decode::DecodeArgs),
    /// Shows the differences between two messages or captures.
    Diff(diff::DiffArgs),
    /// Encodes the output of `decode --json` to bytes.
    Encode(encode::EncodeArgs),
    /// Sends the requests of a capture to a live node and compares the answers.
    Replay(replay::ReplayArgs),
    /// Loads a node with sessions, as an SMF does.
    Load(load::LoadArgs),
    /// Serves as a UPF that refuses, delays, drops and restarts on request.
    Serve(serve::ServeArgs),
    /// Sends bad input to any node, and checks whether it answers as specified.
    Torture(torture::TortureArgs),
    /// Compares what a load was told with what a running node has.
    Audit(audit::AuditArgs),
    /// Lists the sessions of a running node.
    Sessions(listing::SessionArgs),
    /// Lists the associations of a running node.
    Associations(listing::AssociationArgs),
    /// Lists the packet flow descriptions that peers gave a running node.
    Pfds(peer::PfdArgs),
    /// Asks a peer of a running node to release its association.
    Release(peer::ReleaseArgs),
    /// Reports the state of a user plane path to a peer of a running node.
    Report(peer::ReportArgs),
}

pub(crate) fn run(command: PfcpCommand, output: &mut Output) -> CliResult {
    match command {
        PfcpCommand::Decode(args) => decode::run(&args, output),
        PfcpCommand::Diff(args) => diff::run(&args, output),
        PfcpCommand::Encode(args) => encode::run(&args, output),
        PfcpCommand::Replay(args) => replay::run(&args, output),
        PfcpCommand::Load(args) => load::run(&args, output),
        PfcpCommand::Serve(args) => serve::run(&args, output),
        PfcpCommand::Torture(args) => torture::run(&args, output),
        PfcpCommand::Audit(args) => audit::run(&args, output),
        PfcpCommand::Sessions(args) => listing::sessions(&args, output),
        PfcpCommand::Associations(args) => listing::associations(&args, output),
        PfcpCommand::Pfds(args) => peer::pfds(&args, output),
        PfcpCommand::Release(args) => peer::release(&args, output),
        PfcpCommand::Report(args) => peer::report(&args, output),
    }
}
