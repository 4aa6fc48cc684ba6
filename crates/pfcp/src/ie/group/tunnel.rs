//! L2TP tunnels and sessions.

use super::group;

group! {
    /// The L2TP tunnel to use.
    L2tpTunnelInformation L2tpTunnelInformationView = L2TP_TUNNEL_INFORMATION "7.5.2.1-2" {
        lns_address: LnsAddress, M one [SXB N4];
        tunnel_password: TunnelPassword, O opt [SXB N4];
        tunnel_preference: TunnelPreference, C opt [SXB N4];
    }
}

group! {
    /// The L2TP session to use.
    L2tpSessionInformation L2tpSessionInformationView = L2TP_SESSION_INFORMATION "7.5.2.1-3" {
        calling_number: CallingNumber, O opt [SXB N4];
        called_number: CalledNumber, O opt [SXB N4];
        maximum_receive_unit: MaximumReceiveUnit, O opt [SXB N4];
        l2tp_session_indications: L2tpSessionIndications, C opt [SXB N4];
        l2tp_user_authentication: L2tpUserAuthentication, O opt [SXB N4];
    }
}

group! {
    /// An L2TP session that was created.
    CreatedL2tpSession CreatedL2tpSessionView = CREATED_L2TP_SESSION "7.5.3.1-3" {
        dns_server_address: DnsServerAddress, O many [SXB N4];
        nbns_server_address: NbnsServerAddress, O many [SXB N4];
        lns_address: LnsAddress, O opt [SXB N4];
    }
}
