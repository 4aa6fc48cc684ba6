//! `strowger component inspect`: the imports of a component, compared with its grants.

use std::path::PathBuf;

use serde_json::json;
use strowger_wasm::manifest::ManifestCaps;
use strowger_wasm::signature::TrustPolicy;

use super::{ComponentFileArgs, host, load_refusal};
use crate::component::foreign_import_hint;
use crate::config::Config;
use crate::exit::{CliResult, Failure};
use crate::output::{Output, Table, TextStyle};

const EXAMPLES: &str = "\
Examples:
  strowger component inspect counter.wasm
  strowger component inspect counter.toml
  strowger component inspect counter.wasm --manifest strict.toml --json
  strowger component inspect counter.toml --config node.toml

Exit codes:
  1  the component imports functions that its manifest does not grant
  2  the file is no component, exceeds the node's caps, or is not signed as required";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ComponentInspectArgs {
    #[command(flatten)]
    component: ComponentFileArgs,
    /// Configuration of the target node: its caps on manifests and its trusted signers [default:
    /// the defaults of a node].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ComponentInspectArgs, output: &mut Output) -> CliResult {
    let (bytes, manifest) = args.component.read()?;
    let (caps, trust) = match &args.config {
        Some(path) => {
            let components = Config::read(path)?.0.components;
            (components.caps, components.trust)
        }
        None => (ManifestCaps::default(), TrustPolicy::default()),
    };
    let seen = host(caps, trust)?.inspect(&bytes, &manifest);
    let seen = seen.map_err(|error| load_refusal(&args.component, &error))?;
    let denied = seen.imports.iter().filter(|(_, needs)| needs.is_some());
    let denied = denied.count();
    if args.json {
        let imports = seen.imports.iter().map(|(import, needs)| {
            json!({ "import": import, "granted": needs.is_none(), "needs": needs })
        });
        let grants = seen.grants.iter();
        let grants = grants.map(|(key, value)| json!({ "grant": key, "value": value }));
        output.json(&json!({
            "name": manifest.component.name,
            "sha256": seen.digest.to_string(),
            "signer": seen.signer.map(|signer| signer.to_string()),
            "octets": seen.size,
            "engine": seen.engine,
            "waits": seen.waits,
            "grants": grants.collect::<Vec<_>>(),
            "imports": imports.collect::<Vec<_>>(),
            "exports": seen.exports,
        }))?;
    } else {
        output.line(format!("name    {}", manifest.component.name))?;
        output.line(format!("sha256  {}", seen.digest))?;
        if let Some(signer) = seen.signer {
            output.line(format!("signer  {signer} (signature valid)"))?;
        }
        output.line(format!("bytes   {}", seen.size))?;
        output.line(format!("engine  {}", seen.engine))?;
        output.line(format!("exports {}", seen.exports.join(", ")))?;
        for (key, value) in &seen.grants {
            output.line(format!("grants  {key}: {value}"))?;
        }
        let mut table = Table::new(["import", "granted", "needs"]);
        for (import, needs) in &seen.imports {
            let granted = match needs {
                None => output.paint(TextStyle::Green, "yes"),
                Some(_) => output.paint(TextStyle::Red, "no"),
            };
            table.row([import.clone(), granted, needs.unwrap_or("-").to_owned()]);
        }
        if !seen.imports.is_empty() {
            table.print(output)?;
        }
    }
    if denied == 0 {
        return Ok(());
    }
    let mut ungrantable = seen.ungrantable().peekable();
    let hint = match ungrantable.peek() {
        None => "a component is loaded only if all of its imports are granted",
        Some(_) => foreign_import_hint(ungrantable),
    };
    Err(Failure::check(format!("{denied} imports are denied")).hint(hint))
}
