//! `strowger pfcp`: the commands of `strowger-pfcp`, and those that ask a running node.

mod audit;
mod peer;
mod sessions;

use clap::Subcommand;

use crate::exit::CliResult;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum PfcpCommand {
    #[command(flatten)]
    WithoutNode(strowger_pfcp_cli::Command),
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
        PfcpCommand::WithoutNode(command) => command.run(output),
        PfcpCommand::Audit(args) => audit::run(&args, output),
        PfcpCommand::Sessions(args) => sessions::sessions(&args, output),
        PfcpCommand::Associations(args) => sessions::associations(&args, output),
        PfcpCommand::Pfds(args) => peer::pfds(&args, output),
        PfcpCommand::Release(args) => peer::release(&args, output),
        PfcpCommand::Report(args) => peer::report(&args, output),
    }
}
