//! Tunnels of L2TP: TS 29.244 §8.2.187 to §8.2.195 and §8.2.212.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::leaf::{flags, numbers, record, strings};

numbers! {
    /// The preference of a tunnel; the lowest comes first, TS 29.244 §8.2.189.
    TunnelPreference: u24 = TUNNEL_PREFERENCE tunnel_preference;
    /// The largest packet that the peer receives, TS 29.244 §8.2.195.
    MaximumReceiveUnit: u16 = MAXIMUM_RECEIVE_UNIT maximum_receive_unit;
}

flags! {
    /// What an L2TP session asks for, TS 29.244 §8.2.192.
    L2tpSessionIndications: u8, 1..1 = L2TP_SESSION_INDICATIONS {
        REUIA 5/1;
        REDSA 5/2;
        RENSA 5/3;
    }
}

strings! {
    /// The address of the network server, four octets or sixteen, TS 29.244 §8.2.188.
    LnsAddress: octets = LNS_ADDRESS lns_address;
    /// The number that calls, TS 29.244 §8.2.190.
    CallingNumber: text = CALLING_NUMBER calling_number;
    /// The number that is called, TS 29.244 §8.2.191.
    CalledNumber: text = CALLED_NUMBER called_number;
    /// The secret of a tunnel, TS 29.244 §8.2.212.
    TunnelPassword: octets = TUNNEL_PASSWORD tunnel_password;
}

impl<T: AsRef<[u8]>> LnsAddress<T> {
    /// Returns the address, where the octets are one.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        let octets = self.0.as_ref();
        let ipv4 = <[u8; 4]>::try_from(octets).map(Ipv4Addr::from);
        let ipv6 = <[u8; 16]>::try_from(octets).map(Ipv6Addr::from);
        ipv4.map(IpAddr::V4).or_else(|_| ipv6.map(IpAddr::V6)).ok()
    }
}

impl From<IpAddr> for LnsAddress {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self(address.octets().into()),
            IpAddr::V6(address) => Self(address.octets().into()),
        }
    }
}

record! {
    /// What a UE said to authenticate itself, TS 29.244 §8.2.187.
    L2tpUserAuthentication T = L2TP_USER_AUTHENTICATION, head 3 {
        /// The type of RFC 2661.
        proxy_authen_type: 16 5/1;
    } {
        /// The name.
        proxy_authen_name: text8 [if PAN 7/1];
        /// The challenge.
        proxy_authen_challenge: octets8 [if PAC 7/2];
        /// The response.
        proxy_authen_response: octets8 [if PAR 7/3];
        /// The identifier.
        proxy_authen_id: u8 [if PAI 7/4];
    }
}

record! {
    /// A name server of the network, TS 29.244 §8.2.193.
    DnsServerAddress = DNS_SERVER_ADDRESS, head 0 {} {
        /// The address.
        ipv4: ipv4;
    }
}

record! {
    /// A name server of NetBIOS, TS 29.244 §8.2.194.
    NbnsServerAddress = NBNS_SERVER_ADDRESS, head 0 {} {
        /// The address.
        ipv4: ipv4;
    }
}
