//! `strowger component keygen`, `sign`, `verify` and `digest`: signatures of components.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use strowger_wasm::Manifest;
use strowger_wasm::signature::{Signature, SignerKey, SigningKey, Statement, TrustPolicy};

use crate::component::{load_failure, parse_manifest, read_bytes, read_manifest_text};
use crate::config::Config;
use crate::exit::{CliResult, Failure};
use crate::file::read_plain;
use crate::output::Output;

const KEYGEN: &str = "\
Examples:
  strowger component keygen release.pem

Writes a new Ed25519 secret key with mode 0600 (PEM, PKCS#8, as `openssl genpkey -algorithm ed25519`
does) and prints the public key, for [components.trust] in the configuration of nodes.

Exit codes:
  3  the file exists, or cannot be written";

const SIGN: &str = "\
Examples:
  strowger component sign counter/counter.toml --key release.pem

Writes `component.signer` and `component.signature` into the manifest. The signature covers the rest
of the manifest and the code; after a change to either, sign again.

Exit codes:
  2  the key, the manifest or the component is invalid";

const VERIFY: &str = "\
Examples:
  strowger component verify counter/counter.toml
  strowger component verify counter/counter.toml --config node.toml

Exit codes:
  1  the component is not signed
  2  the signature is invalid, or the node does not trust the signer";

const DIGEST: &str = "\
Examples:
  strowger component digest counter.toml > counter.statement
  openssl pkeyutl -sign -rawin -inkey key.pem -in counter.statement | xxd -p -c 128

Prints the text that is signed: the digests of the code and of the manifest without
`component.signature`. Set `component.signer` in the manifest before.";

#[derive(Debug, clap::Args)]
#[command(after_help = KEYGEN)]
pub(crate) struct KeygenArgs {
    /// File to write the secret key to; must not exist.
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SIGN)]
pub(crate) struct SignArgs {
    /// Manifest of the component.
    manifest: PathBuf,
    /// Secret key (PEM), from `keygen` or OpenSSL.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = VERIFY)]
pub(crate) struct VerifyArgs {
    /// Manifest of the component.
    manifest: PathBuf,
    /// Configuration of the target node, with the signers that it trusts.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = DIGEST)]
pub(crate) struct DigestArgs {
    /// Manifest of the component.
    manifest: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn keygen(args: &KeygenArgs, output: &mut Output) -> CliResult {
    let key = SigningKey::generate().map_err(|error| Failure::outside(error.to_string()))?;
    let failed = |error| Failure::file(&args.file, &error);
    let made = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&args.file);
    let mut file = made.map_err(failed)?;
    file.write_all(to_pem(&key).as_bytes()).map_err(failed)?;
    let (name, signer) = (args.file.display(), key.signer());
    if args.json {
        let (file, signer) = (name.to_string(), signer.to_string());
        return output.json(&json!({ "file": file, "signer": signer }));
    }
    output.line(format!(
        "{name}: secret key written, keep it private; public key {signer}"
    ))
}

pub(crate) fn sign(args: &SignArgs, output: &mut Output) -> CliResult {
    let key = read_secret_key(&args.key)?;
    let (written, code) = read_signed(&args.manifest)?;
    let signer = key.signer();
    // The signer is part of the signed statement.
    let named = with_lines(&written, &signer, None);
    let statement = statement(&args.manifest, &named, &code)?;
    let signature = key.sign(&statement);
    let signed = with_lines(&written, &signer, Some(&signature));
    // The text was edited line by line: check that it parses to what was meant.
    let table = Manifest::parse(&signed).ok().filter(|manifest| {
        let found = (manifest.component.signer, manifest.component.signature);
        found == (Some(signer), Some(signature))
            && TrustPolicy::default().check(manifest, &code).is_ok()
    });
    if table.is_none() || !differs_only_in_signature(&written, &signed) {
        let what = format!("{}: no line `[component]`", args.manifest.display());
        return Err(Failure::input(what).hint("write the table `component` under such a line"));
    }
    let wrote = std::fs::write(&args.manifest, &signed);
    wrote.map_err(|error| Failure::file(&args.manifest, &error))?;
    if args.json {
        return output.json(&json!({
            "manifest": args.manifest.display().to_string(),
            "signer": signer.to_string(),
            "signature": signature.to_string(),
        }));
    }
    let file = args.manifest.display();
    output.line(format!("{file}: signed by {signer}"))
}

pub(crate) fn verify(args: &VerifyArgs, output: &mut Output) -> CliResult {
    let (written, code) = read_signed(&args.manifest)?;
    let manifest = parse_manifest(&args.manifest, &written)?;
    let trust = match &args.config {
        Some(path) => Config::read(path)?.0.components.trust,
        None => TrustPolicy::default(),
    };
    let checked = trust.check(&manifest, &code);
    checked.map_err(|error| load_failure(&args.manifest, &error))?;
    let file = args.manifest.display();
    let Some(signer) = manifest.component.signer else {
        let what = format!("{file}: not signed");
        return Err(Failure::check(what).hint("sign it with `strowger component sign`"));
    };
    if args.json {
        return output.json(&json!({
            "manifest": file.to_string(),
            "signer": signer.to_string(),
            "name": trust.name(&signer),
        }));
    }
    output.line(format!(
        "{file}: valid signature by {}",
        trust.label(&signer)
    ))
}

pub(crate) fn digest(args: &DigestArgs, output: &mut Output) -> CliResult {
    let (written, code) = read_signed(&args.manifest)?;
    let statement = statement(&args.manifest, &written, &code)?;
    if args.json {
        return output.json(&json!({
            "statement": statement.to_string(),
            "manifest": statement.manifest.to_string(),
            "code": statement.code.to_string(),
        }));
    }
    output.line(statement.to_string().trim_end())
}

/// Returns the text of a manifest, and the bytes of its component.
fn read_signed(path: &Path) -> CliResult<(String, Vec<u8>)> {
    let written = read_manifest_text(path)?;
    let manifest = parse_manifest(path, &written).or_else(|failure| {
        // The error may be in the lines that are about to be replaced.
        let plain = without_lines(&written);
        parse_manifest(path, &plain).map_err(|_| failure)
    })?;
    let Some(file) = manifest.component.file else {
        let text = format!("{}: no `component.file`", path.display());
        return Err(Failure::input(text).hint("set it to the path of the component"));
    };
    Ok((written, read_bytes(&file)?))
}

fn statement(path: &Path, manifest: &str, code: &[u8]) -> CliResult<Statement> {
    let statement = Statement::of(manifest, code);
    statement.map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}

/// Returns the lines of a manifest, each with two flags: whether the line names the signer or the
/// signature, and whether the table `component` begins there.
fn classified_lines(text: &str) -> impl Iterator<Item = (&str, bool, bool)> {
    let mut within = false;
    text.split_inclusive('\n').map(move |line| {
        let plain = line.trim();
        let head = plain.starts_with('[');
        if head {
            let table = plain.split('#').next().unwrap_or_default();
            within = table.trim() == "[component]";
        }
        let key = plain.split_once('=').map(|(key, _)| key.trim());
        let ours = within && matches!(key, Some("signer" | "signature"));
        (line, ours, head && within)
    })
}

fn without_lines(text: &str) -> String {
    let kept = classified_lines(text).filter(|(_, ours, _)| !ours);
    kept.map(|(line, ..)| line).collect()
}

/// Returns a manifest with these lines at the beginning of the table `component`, in place of any
/// earlier ones.
fn with_lines(text: &str, signer: &SignerKey, signature: Option<&Signature>) -> String {
    let mut signed = String::new();
    for (line, ours, begins) in classified_lines(text) {
        if ours {
            continue;
        }
        signed.push_str(line);
        if begins {
            if !line.ends_with('\n') {
                signed.push('\n');
            }
            signed.push_str(&format!("signer = \"{signer}\"\n"));
            if let Some(signature) = signature {
                signed.push_str(&format!("signature = \"{signature}\"\n"));
            }
        }
    }
    signed
}

/// Returns `true` if two manifests are equal except for their signatures.
fn differs_only_in_signature(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let mut table: toml::Table = text.parse().ok()?;
        let component = table.get_mut("component")?.as_table_mut()?;
        component.remove("signer");
        component.remove("signature");
        Some(table)
    };
    plain(one).is_some() && plain(one) == plain(other)
}

/// The prefix of an Ed25519 secret key in PKCS#8 (RFC 8410 §7); the seed follows it.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

fn to_pem(key: &SigningKey) -> String {
    let der = [&PKCS8[..], &key.to_seed()].concat();
    format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(der))
}

fn parse_pem(text: &str) -> Option<SigningKey> {
    let (_, text) = text.split_once(BEGIN)?;
    let (text, _) = text.split_once(END)?;
    let text: String = text.split_whitespace().collect();
    let der = STANDARD.decode(text).ok()?;
    let seed = der.strip_prefix(&PKCS8)?.try_into().ok()?;
    Some(SigningKey::from_seed(seed))
}

fn read_secret_key(path: &Path) -> CliResult<SigningKey> {
    const MAX_KEY_BYTES: usize = 64 << 10;
    let read = read_plain(path, MAX_KEY_BYTES)?;
    let key = std::str::from_utf8(&read).ok().and_then(parse_pem);
    key.ok_or_else(|| {
        let what = format!(
            "{}: not an Ed25519 secret key in PEM format",
            path.display()
        );
        Failure::input(what).hint("generate one with `strowger component keygen FILE`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_key_is_read_back() {
        let key = SigningKey::from_seed([7; 32]);
        let read = parse_pem(&to_pem(&key)).expect("it is a key");
        assert_eq!(read.to_seed(), key.to_seed());
        // RFC 8410 §10.3.
        let text = "-----BEGIN PRIVATE KEY-----\n\
                    MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
                    -----END PRIVATE KEY-----\n";
        let key = parse_pem(text).expect("it is a key");
        let public = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";
        assert_eq!(key.signer().to_string(), public);
        for bad in ["", &text.replace("MC4", "MC5"), &text.replace("hC\n", "\n")] {
            assert!(parse_pem(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn other_tables_and_comments_are_kept() {
        let signer = SigningKey::from_seed([7; 32]).signer();
        let text = "# signer = 1\r\n[component] # it\r\nname = \"a\"\r\n  signer = \"old\"\r\n\
                    [config]\r\nsigner = \"mine\"";
        let signed = with_lines(text, &signer, None);
        let expected = format!(
            "# signer = 1\r\n[component] # it\r\nsigner = \"{signer}\"\nname = \"a\"\r\n\
             [config]\r\nsigner = \"mine\""
        );
        assert_eq!(signed, expected);
        assert!(differs_only_in_signature(text, &signed));
        assert_eq!(
            with_lines(&signed, &signer, None),
            signed,
            "it is there once"
        );
        assert!(!differs_only_in_signature(
            text,
            &text.replace("mine", "other")
        ));
        assert!(
            !differs_only_in_signature("[config]", "[config]"),
            "there is no component"
        );
    }
}
