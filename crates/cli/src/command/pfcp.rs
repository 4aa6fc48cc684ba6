//! `strowger pfcp`: decodes, encodes and sends PFCP messages.

mod audit;
mod decode;
mod dictionary;
mod diff;
mod encode;
pub(crate) mod hex;
pub(super) mod load;
mod peer;
mod profile;
mod replay;
mod robustness;
mod serve;
mod sessions;
mod source;
pub(crate) mod time;

use clap::Subcommand;

use crate::exit::CliResult;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum PfcpCommand {
    /// Decode the messages of a capture or of hex text.
    Decode(decode::DecodeArgs),
    /// Compare two messages or captures.
    Diff(diff::DiffArgs),
    /// Encode the output of `decode --json`.
    Encode(encode::EncodeArgs),
    /// Replay the requests of a capture against a live node and compare the responses.
    Replay(replay::ReplayArgs),
    /// Generate load on a node, as an SMF does, and measure latency.
    Load(load::LoadArgs),
    /// Run a UPF that rejects, delays, drops and restarts as scripted.
    Serve(serve::ServeArgs),
    /// Send malformed input to a node and check its responses against TS 29.244.
    Robustness(robustness::RobustnessArgs),
    /// Compare the journal of a load with the sessions of a running node.
    Audit(audit::AuditArgs),
    /// List the sessions of a running node, or show one.
    Sessions(sessions::SessionArgs),
    /// List the associations of a running node.
    Associations(sessions::AssociationArgs),
    /// List the packet flow descriptions (PFDs) of a running node.
    Pfds(peer::PfdArgs),
    /// Ask a peer to release its association.
    Release(peer::ReleaseArgs),
    /// Report the state of a user plane path to a peer.
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
        PfcpCommand::Robustness(args) => robustness::run(&args, output),
        PfcpCommand::Audit(args) => audit::run(&args, output),
        PfcpCommand::Sessions(args) => sessions::sessions(&args, output),
        PfcpCommand::Associations(args) => sessions::associations(&args, output),
        PfcpCommand::Pfds(args) => peer::pfds(&args, output),
        PfcpCommand::Release(args) => peer::release(&args, output),
        PfcpCommand::Report(args) => peer::report(&args, output),
    }
}
