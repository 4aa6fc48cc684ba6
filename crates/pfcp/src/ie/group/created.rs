//! Information of the UP function about created rules and resources.

use super::group;

group! {
    /// The values that the UP function allocated for a packet detection rule.
    CreatedPdr CreatedPdrView = CREATED_PDR "7.5.3.2-1" {
        pdr_id: PdrId, M one [SXA SXB N4 N4MB];
        f_teids: FTeid, C many [SXA SXB N4];
        ue_ip_addresses: UeIpAddress, C many [SXB N4];
        mapped_n6_ip_address: MappedN6IpAddress, C opt [N4];
        local_ingress_tunnel: LocalIngressTunnel, C opt [N4MB];
    }
}

group! {
    /// The values that the UP function allocated for a traffic endpoint.
    CreatedTrafficEndpoint CreatedTrafficEndpointView = CREATED_TRAFFIC_ENDPOINT "7.5.3.5-1" {
        traffic_endpoint_id: TrafficEndpointId, M one [SXA SXB N4 N4MB];
        f_teids: FTeid, C many [SXA SXB N4];
        ue_ip_addresses: UeIpAddress, C many [SXB N4];
        mapped_n6_ip_address: MappedN6IpAddress, C opt [N4];
        local_ingress_tunnel: LocalIngressTunnel, C opt [N4MB];
    }
}

group! {
    /// The values that the UP function allocated for a bridge or router.
    CreatedBridgeRouterInfo CreatedBridgeRouterInfoView = CREATED_BRIDGE_ROUTER_INFO "7.5.3.6-1" {
        port_number: PortNumber, C opt [N4];
        five_gs_user_plane_node_id: FiveGsUserPlaneNodeId, C opt [N4];
    }
}

group! {
    /// The load of a node.
    LoadControlInformation LoadControlInformationView = LOAD_CONTROL_INFORMATION "7.5.3.3-1" {
        load_control_sequence_number: SequenceNumber, M one [ALL] "Load Control Sequence Number";
        load_metric: Metric, M one [ALL] "Load Metric";
    }
}

group! {
    /// The reduction of load that a node requests.
    OverloadControlInformation OverloadControlInformationView
        = OVERLOAD_CONTROL_INFORMATION "7.5.3.4-1" {
        overload_control_sequence_number: SequenceNumber,
            M one [ALL] "Overload Control Sequence Number";
        overload_reduction_metric: Metric, M one [ALL] "Overload Reduction Metric";
        period_of_validity: Timer, M one [ALL] "Period of Validity";
        overload_control_information_flags: OciFlags,
            C opt [ALL] "Overload Control Information Flags";
    }
}

group! {
    /// The part of a request that failed.
    PartialFailureInformation PartialFailureInformationView
        = PARTIAL_FAILURE_INFORMATION "7.5.3.1-2" {
        failed_rule_id: FailedRuleId, M one [SXB SXC N4 N4MB];
        failure_cause: Cause, M one [SXB SXC N4 N4MB] "Failure Cause";
        offending_ie_informations: OffendingIeInformation, M many [SXB SXC N4 N4MB];
    }
}

group! {
    /// The values that the UP function allocated for an updated packet detection rule.
    UpdatedPdr UpdatedPdrView = UPDATED_PDR "7.5.5.5-1" {
        pdr_id: PdrId, M one [N4];
        f_teids: FTeid, C many [SXB N4];
        ue_ip_addresses: UeIpAddress, C many [SXB N4];
    }
}
