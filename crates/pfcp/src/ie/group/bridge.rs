//! Bridges and routers of time-sensitive networks.

use super::group;

group! {
    /// Management information for a bridge or router.
    TscManagementInformationModificationRequest TscManagementInformationModificationRequestView
        = TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_MODIFICATION_REQUEST "7.5.4.18-1" {
        port_management_information_container: PortManagementInformationContainer, O opt [N4];
        user_plane_node_management_information_container:
            UserPlaneNodeManagementInformationContainer, O opt [N4];
        nw_tt_port_number: NwTtPortNumber, C opt [N4];
        direct_reporting_information: TscDirectReportingInformation, C rare [N4; R17];
    }
}

group! {
    /// Management information in the answer of a bridge or router.
    TscManagementInformationModificationResponse TscManagementInformationModificationResponseView
        = TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_MODIFICATION_RESPONSE "7.5.5.3-1" {
        port_management_information_container: PortManagementInformationContainer, O opt [N4];
        user_plane_node_management_information_container:
            UserPlaneNodeManagementInformationContainer, O opt [N4];
        nw_tt_port_number: NwTtPortNumber, C opt [N4];
    }
}

group! {
    /// Management information reported by a bridge or router.
    TscManagementInformationReportRequest TscManagementInformationReportRequestView
        = TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_REPORT_REQUEST "7.5.8.5-1" {
        port_management_information_container: PortManagementInformationContainer, O opt [N4];
        user_plane_node_management_information_container:
            UserPlaneNodeManagementInformationContainer, O opt [N4];
        nw_tt_port_number: NwTtPortNumber, C opt [N4];
    }
}

group! {
    /// MAC addresses that moved with a UE.
    EthernetContextInformation EthernetContextInformationView
        = ETHERNET_CONTEXT_INFORMATION "7.5.4.21-1" {
        mac_addresses_detecteds: MacAddressesDetected, M many [N4];
    }
}
