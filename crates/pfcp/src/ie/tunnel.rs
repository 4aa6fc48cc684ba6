//! L2TP tunnels and sessions: TS 29.244 §8.2.187 to §8.2.195 and §8.2.212.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::leaf::{flags, numbers, record, strings};

numbers! {
    /// The preference of a tunnel, where the lowest value is tried first, TS 29.244 §8.2.189.
    TunnelPreference: u24 = TUNNEL_PREFERENCE tunnel_preference;
    /// The maximum size of a packet that the peer can receive, TS 29.244 §8.2.195.
    MaximumReceiveUnit: u16 = MAXIMUM_RECEIVE_UNIT maximum_receive_unit;
}

flags! {
    /// Flags of the requests of an L2TP session, TS 29.244 §8.2.192.
    L2tpSessionIndications: u8, 1..1 = L2TP_SESSION_INDICATIONS {
        REUIA 5/1;
        REDSA 5/2;
        RENSA 5/3;
    }
}

strings! {
    /// The address of the L2TP network server (LNS) in four or sixteen bytes, TS 29.244 §8.2.188.
    LnsAddress: bytes = LNS_ADDRESS lns_address;
    /// The calling number, TS 29.244 §8.2.190.
    CallingNumber: text = CALLING_NUMBER calling_number;
    /// The called number, TS 29.244 §8.2.191.
    CalledNumber: text = CALLED_NUMBER called_number;
    /// The password of a tunnel, TS 29.244 §8.2.212.
    TunnelPassword: bytes = TUNNEL_PASSWORD tunnel_password;
}

impl<T: AsRef<[u8]>> LnsAddress<T> {
    /// Returns the IP address, if the bytes have the length of one.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        let bytes = self.0.as_ref();
        let ipv4 = <[u8; 4]>::try_from(bytes).map(Ipv4Addr::from);
        let ipv6 = <[u8; 16]>::try_from(bytes).map(Ipv6Addr::from);
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
    /// The authentication data of a UE, TS 29.244 §8.2.187.
    L2tpUserAuthentication T = L2TP_USER_AUTHENTICATION, head 3 {
        /// The authentication type of RFC 2661.
        proxy_authen_type: 16 5/1;
    } {
        /// The authentication name.
        proxy_authen_name: text8 [if PAN 7/1];
        /// The authentication challenge.
        proxy_authen_challenge: bytes8 [if PAC 7/2];
        /// The authentication response.
        proxy_authen_response: bytes8 [if PAR 7/3];
        /// The authentication identifier.
        proxy_authen_id: u8 [if PAI 7/4];
    }
}

record! {
    /// The address of a DNS server, TS 29.244 §8.2.193.
    DnsServerAddress = DNS_SERVER_ADDRESS, head 0 {} {
        /// The IPv4 address.
        ipv4: ipv4;
    }
}

record! {
    /// The address of a NetBIOS name server, TS 29.244 §8.2.194.
    NbnsServerAddress = NBNS_SERVER_ADDRESS, head 0 {} {
        /// The IPv4 address.
        ipv4: ipv4;
    }
}
