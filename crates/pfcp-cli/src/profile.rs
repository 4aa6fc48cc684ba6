//! The network of the sessions of a load or a robustness test, as arguments.

use strowger_pfcp::endpoint::Network;
use strowger_pfcp::ie::{PdnType, SNssai};
use strowger_pfcp_node::SessionProfile;

/// The arguments that describe the network of the sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct ProfileArgs {
    /// Data network of the sessions: APN/DNN, and Network Instance of their PDRs.
    #[arg(long, value_name = "NAME")]
    dnn: Option<String>,
    /// Network slice of the sessions: SST, or SST-SD with SD as six hex digits.
    #[arg(long, value_name = "SST[-SD]", value_parser = parse_s_nssai)]
    s_nssai: Option<SNssai>,
    /// PDN type of the sessions: ipv4, ipv6, ipv4v6, ethernet or non-ip [default: that of the
    /// pools].
    #[arg(long, value_name = "TYPE", value_parser = parse_pdn_type)]
    pdn_type: Option<PdnType>,
    /// Network of the UE addresses, such as 10.45.0.0/16; at most one per IP version.
    #[arg(long, value_name = "NETWORK")]
    ue_pool: Vec<Network>,
}

impl ProfileArgs {
    /// Returns the profile, with the values of `usual` where no argument is given.
    pub(crate) fn profile(&self, usual: &SessionProfile) -> SessionProfile {
        let mut profile = usual.clone();
        profile.dnn.clone_from(&self.dnn);
        profile.s_nssai.clone_from(&self.s_nssai);
        profile.pdn_type = match self.pdn_type {
            Some(pdn_type) => pdn_type,
            None if self.ue_pool.is_empty() => usual.pdn_type,
            None => SessionProfile::type_of(&self.ue_pool),
        };
        if !self.ue_pool.is_empty() {
            profile.ue_pools.clone_from(&self.ue_pool);
        } else if profile.pdn_type != usual.pdn_type {
            profile.ue_pools = SessionProfile::pools_of(profile.pdn_type);
        }
        profile
    }
}

fn parse_s_nssai(text: &str) -> Result<SNssai, String> {
    let wrong = || "expected SST or SST-SD, such as 1 or 1-0a0b0c".to_owned();
    let (sst, sd) = match text.split_once('-') {
        Some((sst, sd)) => (sst, Some(sd)),
        None => (text, None),
    };
    let sst = sst.parse().map_err(|_| wrong())?;
    let sd = match sd {
        // The value for "no SD", as the clause defines it.
        None => 0x00ff_ffff,
        Some(sd) if sd.len() == 6 && sd.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u32::from_str_radix(sd, 16).map_err(|_| wrong())?
        }
        Some(_) => return Err(wrong()),
    };
    Ok(SNssai { sst, sd })
}

fn parse_pdn_type(text: &str) -> Result<PdnType, String> {
    match text.to_ascii_lowercase().as_str() {
        "ipv4" => Ok(PdnType::IPV4),
        "ipv6" => Ok(PdnType::IPV6),
        "ipv4v6" => Ok(PdnType::IPV4V6),
        "ethernet" => Ok(PdnType::ETHERNET),
        "non-ip" => Ok(PdnType::NON_IP),
        _ => Err("expected ipv4, ipv6, ipv4v6, ethernet or non-ip".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_differentiator_is_optional() {
        let read = |text| parse_s_nssai(text).map(|slice| (slice.sst, slice.sd));
        assert_eq!(read("1"), Ok((1, 0x00ff_ffff)));
        assert_eq!(read("222-0A0b0c"), Ok((222, 0x000a_0b0c)));
        for wrong in ["", "256", "1-", "1-+abcde", "1-12345", "1-1234567", "-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
