//! Sets of IP addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network: an address and its prefix length.
///
/// ```
/// use strowger_pfcp::endpoint::Network;
///
/// let loopback: Network = "127.0.0.0/8".parse()?;
/// assert!(loopback.contains("127.3.2.1".parse().unwrap()));
/// assert!("127.0.0.0/33".parse::<Network>().is_err());
/// # Ok::<(), strowger_pfcp::endpoint::NetworkError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// The error returned when a text is not a valid network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a network: an address, or ADDRESS/BITS like 10.0.0.0/8")]
pub struct NetworkError {
    text: String,
}

impl Network {
    /// Creates a network with a single host.
    #[must_use]
    pub const fn host(address: IpAddr) -> Self {
        Self {
            address,
            prefix: if address.is_ipv4() { 32 } else { 128 },
        }
    }

    /// Returns the address as it was written, including its host bits.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the prefix length in bits.
    #[must_use]
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Returns `true` if the network contains the address. An IPv4-mapped IPv6 address counts as
    /// IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(host)) => {
                let mask = u32::MAX
                    .checked_shl(32 - u32::from(self.prefix))
                    .unwrap_or(0);
                net.to_bits() & mask == host.to_bits() & mask
            }
            (IpAddr::V6(net), IpAddr::V6(host)) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.prefix))
                    .unwrap_or(0);
                net.to_bits() & mask == host.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError {
            text: text.to_owned(),
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let whole = Self::host(address.parse().map_err(|_| error())?);
        let Some(prefix) = prefix else {
            return Ok(whole);
        };
        let prefix = prefix.parse().map_err(|_| error())?;
        if prefix > whole.prefix {
            return Err(error());
        }
        Ok(Self { prefix, ..whole })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
