//! Vendor-specific elements: rows give them names and fields, in text and in comparisons, and an
//! element without a row is kept as received.
//!
//! `cargo run -p strowger-examples pfcp_vendor`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::Ipv4Addr;

use strowger_pfcp::ie::Value;
use strowger_pfcp::ie::descriptor::FieldExtent;
use strowger_pfcp::message::AssociationSetupRequest;
use strowger_pfcp::vendor::{Dictionary, VendorField, VendorRow};
use strowger_pfcp::{IeType, Ignore, Index, Message, MessageView, Sequence};

/// The enterprise number that IANA assigned.
const ACME: u16 = 35_818;

// An element can be a sequence of fields. `strowger pfcp decode --dictionary` reads the same
// definitions from a file.
static PROBE: VendorRow = VendorRow::fields(ACME, IeType(0x8001), "Acme Probe", &PROBE_FIELDS);
static PROBE_FIELDS: [VendorField; 3] = [
    VendorField::ipv4("collector"),
    VendorField::number("interval", 2),
    VendorField::text("label", FieldExtent::Rest),
];

// Or it is a group of elements: of this vendor, of another one, or of the specification.
static PROBES: VendorRow = VendorRow::group(ACME, IeType(0x8002), "Acme Probes");

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let vendors = Dictionary::new()
        .with_vendor(ACME, "Acme")?
        .with_rows([&PROBE, &PROBES])?;

    let often = setup(10)?.encode()?;
    let seldom = setup(600)?.encode()?;
    let mut indexes = [Index::new(), Index::new()];
    let [first, second] = &mut indexes;
    let often = MessageView::decode(&often, first)?;
    let seldom = MessageView::decode(&seldom, second)?;
    println!("{}", vendors.show(&often));

    let probe = often.root().find(PROBE.ie()).ok_or("no probe")?;
    let probe = vendors.element(probe).ok_or("shorter than its row")?;
    println!("every {:?} s", probe.field("interval"));

    for difference in vendors.compare(&often, &seldom, &Ignore::nothing()) {
        println!("{difference}");
    }

    // The owned value keeps every element, known or not.
    let again = often.to_message()?;
    println!("kept: {}", again.encode()? == setup(10)?.encode()?);
    Ok(())
}

/// Returns a setup request with a probe of the vendor, and with an element that has no row.
fn setup(interval: u64) -> Result<Message, Box<dyn Error>> {
    let node = Ipv4Addr::new(192, 0, 2, 1);
    let mut body = AssociationSetupRequest::new(node, 0);
    let probe = PROBE.value(&[
        ("collector", Value::Ipv4(Ipv4Addr::new(198, 51, 100, 7))),
        ("interval", Value::Number(interval)),
        ("label", Value::Bytes(b"latency")),
    ])?;
    body.rest.push(PROBE.ie(), probe);
    body.rest.push(IeType(0x8003), [0x8b, 0xea, 1, 2, 3]);
    Ok(Message::node(Sequence::new(1), body))
}
