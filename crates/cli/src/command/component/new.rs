//! `strowger component new`: a package to start from.

mod sdk;

use std::path::{Path, PathBuf};

use crate::exit::{CliResult, Failure};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  strowger component new hello
  strowger component build hello && echo world | strowger component run hello/hello.toml
  strowger component new hello --sdk ../strowger/components/sdk

The package contains a copy of the crate `strowger-component` and of the WIT contract, with their
licences, in its directory `sdk`. Their dependencies come from crates.io, pinned by Cargo.lock.";

const SOURCE: &str = r#"//! Replies to a name with a greeting.

use strowger_component::{Actor, Message, Start, export};

struct Greeter;

impl Actor for Greeter {
    fn init(_: Start) -> Result<Self, String> {
        Ok(Self)
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, String> {
        let name = String::from_utf8(message.payload).map_err(|_| "not text")?;
        Ok(format!("hello {name}").into_bytes())
    }
}

export!(Greeter);
"#;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ComponentNewArgs {
    /// Directory to create; its name becomes the name of the component.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Path of the crate `strowger-component`, to use instead of a copy in the package.
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
}

pub(crate) fn run(args: &ComponentNewArgs, output: &mut Output) -> CliResult {
    let folder = &args.folder;
    let name = folder.file_name().and_then(|name| name.to_str());
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = name.filter(|name| name.chars().all(plain));
    let name = name.ok_or_else(|| {
        Failure::input(format!("{}: not a valid package name", folder.display()))
            .hint("use letters, digits, `-` and `_`")
    })?;
    let sdk = match &args.sdk {
        Some(path) => {
            let path = std::fs::canonicalize(path).map_err(|error| Failure::file(path, &error))?;
            format!("{{ path = {:?} }}", path.display().to_string())
        }
        None => format!("{{ path = {:?} }}", sdk::FOLDER),
    };
    if name == sdk::NAME {
        let text = format!("{}: name is reserved for the SDK crate", folder.display());
        return Err(Failure::input(text).hint("choose another name"));
    }
    std::fs::create_dir(folder).map_err(|error| Failure::file(folder, &error))?;
    write_file(&folder.join("src/lib.rs"), SOURCE)?;
    write_file(&folder.join("Cargo.toml"), &package_manifest(name, &sdk))?;
    write_file(
        &folder.join(format!("{name}.toml")),
        &component_manifest(name),
    )?;
    if args.sdk.is_none() {
        for (file, text) in sdk::FILES {
            write_file(&folder.join(sdk::FOLDER).join(file), text)?;
        }
        if let Some(lock) = sdk::lock_file(name) {
            write_file(&folder.join("Cargo.lock"), &lock)?;
        }
    }
    let place = folder.display();
    output.line(format!(
        "created {place}; build it with `strowger component build {place}`"
    ))
}

fn write_file(path: &Path, text: &str) -> CliResult {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| Failure::file(parent, &error))?;
    }
    std::fs::write(path, text).map_err(|error| Failure::file(path, &error))
}

fn package_manifest(name: &str, sdk: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\n\
         [dependencies]\nstrowger-component = {sdk}\n\n\
         [profile.release]\ncodegen-units = 1\nlto = true\nopt-level = \"s\"\n\
         panic = \"abort\"\nstrip = true\n\n\
         # A workspace of its own, wherever it stands.\n[workspace]\n"
    )
}

fn component_manifest(name: &str) -> String {
    format!(
        "[component]\nname = \"{name}\"\nfile = \"{name}.wasm\"\n\n\
         [limits]\nmemory = \"4MiB\"\ndeadline = \"10ms\"\n\n\
         # What is not granted is denied.\n[grant]\n"
    )
}
