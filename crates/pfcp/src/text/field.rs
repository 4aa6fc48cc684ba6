//! The names of fields in words, and their values with units.

use std::fmt::{self, Display};

use crate::ie::descriptor::ListItemKind;
use crate::ie::name;
use crate::ie::value::{Value, text_of};
use crate::ie::{FieldKind, IeType};

/// The name of a field as users write it: `gtpu_udp_ipv4` becomes GTP-U UDP IPv4.
pub(super) struct DisplayName<'a>(pub(super) &'a str);

impl Display for DisplayName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, word) in self.0.split('_').enumerate() {
            f.write_str(if place == 0 { "" } else { " " })?;
            f.write_str(spelled(word))?;
        }
        Ok(())
    }
}

/// Returns an abbreviation in the spelling of the specification, and any other word as it is.
fn spelled(word: &str) -> &str {
    match word {
        "arp" => "ARP",
        "bid" => "BID",
        "c" => "C",
        "choose" => "CHOOSE",
        "csids" => "CSIDs",
        "dei" => "DEI",
        "dl" => "DL",
        "dscp" => "DSCP",
        "dscps" => "DSCPs",
        "far" => "FAR",
        "fqdn" => "FQDN",
        "gbr" => "GBR",
        "gtpu" => "GTP-U",
        "hmac" => "HMAC",
        "id" => "ID",
        "ie" => "IE",
        "ip" => "IP",
        "ipv4" => "IPv4",
        "ipv6" => "IPv6",
        "mac" => "MAC",
        "mbr" => "MBR",
        "mcc" => "MCC",
        "mnc" => "MNC",
        "mptcp" => "MPTCP",
        "mpquic" => "MPQUIC",
        "n6" => "N6",
        "n19" => "N19",
        "pcp" => "PCP",
        "pdn" => "PDN",
        "pdu" => "PDU",
        "pfcp" => "PFCP",
        "pfd" => "PFD",
        "ppi" => "PPI",
        "qer" => "QER",
        "qfi" => "QFI",
        "qfis" => "QFIs",
        "rat" => "RAT",
        "rtp" => "RTP",
        "rtt" => "RTT",
        "s" => "S",
        "sdf" => "SDF",
        "seid" => "SEID",
        "ssm" => "SSM",
        "teid" => "TEID",
        "tgpp" => "3GPP",
        "tos" => "ToS",
        "udp" => "UDP",
        "ue" => "UE",
        "ul" => "UL",
        "ur" => "UR",
        "uri" => "URI",
        "url" => "URL",
        "urr" => "URR",
        "v4" => "V4",
        "v6" => "V6",
        "vid" => "VID",
        _ => word,
    }
}

/// The value of a field, for formatting.
pub(super) struct FieldText<'a> {
    pub(super) ie: IeType,
    pub(super) name: &'a str,
    pub(super) kind: FieldKind,
    pub(super) value: Value<'a>,
}

impl Display for FieldText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Flag(flag) => flag.fmt(f),
            Value::Number(number) => self.number(f, number),
            Value::Signed(number) => match unit(self.ie, self.name) {
                Unit::Of(unit) => write!(f, "{number} {unit}"),
                _ => number.fmt(f),
            },
            Value::Time(seconds) => super::time(f, seconds),
            Value::Ipv4(address) => address.fmt(f),
            Value::Ipv6(address) => address.fmt(f),
            Value::Mac([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
            Value::Bytes(bytes) => self.bytes(f, bytes),
        }
    }
}

impl FieldText<'_> {
    fn bytes(&self, f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
        if let FieldKind::List(each, _) = self.kind {
            return self.list(f, each, bytes);
        }
        match text_of(self.kind, bytes) {
            // Many peers encode network names as labels, which are not readable as text.
            Some(text) if text.starts_with(|first: char| first.is_ascii_control()) => {
                match name::from_labels(bytes) {
                    Some(name) => write!(f, "{} (as labels)", name.escape_debug()),
                    None => write!(f, "{}", text.escape_debug()),
                }
            }
            Some(text) => write!(f, "{}", text.escape_debug()),
            None => Hex(bytes).fmt(f),
        }
    }

    fn list(&self, f: &mut fmt::Formatter<'_>, each: ListItemKind, bytes: &[u8]) -> fmt::Result {
        // Quotes, because a text may contain commas.
        let quote = if each == ListItemKind::Text { "\"" } else { "" };
        f.write_str("[")?;
        for (place, value) in each.values(bytes).enumerate() {
            f.write_str(if place == 0 { "" } else { ", " })?;
            let item = FieldText {
                kind: each.kind(),
                value,
                ..*self
            };
            write!(f, "{quote}{item}{quote}")?;
        }
        f.write_str("]")
    }

    fn number(&self, f: &mut fmt::Formatter<'_>, number: u64) -> fmt::Result {
        let (names, bytes) = match self.kind {
            FieldKind::Bits { names, .. } => (names, 1),
            FieldKind::Number { names, bytes, .. } => (names, bytes),
            _ => (None, 8),
        };
        if let Some(name) = names.and_then(|names| names(number)) {
            return write!(f, "{name} ({number})");
        }
        if is_hexadecimal(self.name) {
            return write!(f, "0x{number:0width$x}", width = 2 * bytes);
        }
        number.fmt(f)?;
        match unit(self.ie, self.name) {
            Unit::Percent => f.write_str(" %"),
            Unit::Of(unit) => write!(f, " {unit}"),
            Unit::Times(factor, unit) => write!(f, " ({} {unit})", number * factor),
            Unit::Rule if number & 0x8000_0000 != 0 => {
                write!(f, " (predefined rule {})", number & 0x7fff_ffff)
            }
            Unit::None | Unit::Rule => Ok(()),
        }
    }
}

/// Returns `true` if the field is better read in hexadecimal.
fn is_hexadecimal(name: &str) -> bool {
    matches!(
        name,
        "teid"
            | "seid"
            | "ethertype"
            | "tos_traffic_class"
            | "security_parameter_index"
            | "flow_label"
    )
}

enum Unit {
    None,
    Percent,
    Of(&'static str),
    /// A multiple of a unit: the factor and the unit.
    Times(u64, &'static str),
    /// The most significant of the 32 bits marks a rule that is predefined in the UP function.
    Rule,
}

fn unit(ie: IeType, name: &str) -> Unit {
    match (ie, name) {
        (IeType::FAR_ID | IeType::URR_ID | IeType::QER_ID | IeType::LINKED_URR_ID, _) => Unit::Rule,
        (IeType::DOWNLINK_DATA_NOTIFICATION_DELAY, _) => Unit::Times(50, "ms"),
        (
            IeType::AVERAGE_PACKET_DELAY
            | IeType::MINIMUM_PACKET_DELAY
            | IeType::MAXIMUM_PACKET_DELAY
            | IeType::AVERAGING_WINDOW,
            _,
        )
        | (_, "rtt") => Unit::Of("ms"),
        (IeType::TIME_OFFSET_THRESHOLD | IeType::TIME_OFFSET_MEASUREMENT, _) => Unit::Of("ns"),
        (IeType::VALIDITY_TIMER, _) => Unit::Of("min"),
        (IeType::METRIC | IeType::WEIGHT, _) | (_, "packet_loss_rate") => Unit::Percent,
        (_, "ul_mbr" | "dl_mbr" | "ul_gbr" | "dl_gbr") => Unit::Of("kbit/s"),
        (
            _,
            "time_threshold"
            | "subsequent_time_threshold"
            | "inactivity_detection_time"
            | "measurement_period"
            | "duration"
            | "quota_holding_time"
            | "time_quota"
            | "validity_time"
            | "ethernet_inactivity_timer"
            | "user_plane_inactivity_timer"
            | "minimum_wait_time",
        ) => Unit::Of("s"),
        (_, "total_volume" | "uplink_volume" | "downlink_volume" | "dl_data_packets_size") => {
            Unit::Of("bytes")
        }
        _ => Unit::None,
    }
}

/// Bytes as hexadecimal digits.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
