//! Node-related messages.

use crate::ie::members::group;

group! {
    /// Checks that the peer is alive.
    HeartbeatRequest HeartbeatRequestView = message "7.4.2.1-1" {
        recovery_time_stamp: RecoveryTimeStamp, M one [ALL];
        source_ip_address: SourceIpAddress, O opt [ALL];
    }
}

group! {
    /// Answers a heartbeat.
    HeartbeatResponse HeartbeatResponseView = message "7.4.2.2-1" {
        recovery_time_stamp: RecoveryTimeStamp, M one [ALL];
    }
}

group! {
    /// Requests an association.
    AssociationSetupRequest AssociationSetupRequestView = message "7.4.4.1-1" {
        node_id: NodeId, M one [ALL];
        recovery_time_stamp: RecoveryTimeStamp, M one [ALL];
        up_function_features: UpFunctionFeatures, C opt [ALL];
        cp_function_features: CpFunctionFeatures, C opt [ALL];
        alternative_smf_ip_addresses: AlternativeSmfIpAddress, O many [N4 N4MB];
        smf_set_id: SmfSetId, C opt [N4 N4MB];
        pfcp_session_retention_information: PfcpSessionRetentionInformation, O rare [ALL];
        ue_ip_address_pool_informations: UeIpAddressPoolInformation, O many [SXB N4];
        gtpu_path_qos_control_informations: GtpuPathQosControlInformation, C many [N4];
        clock_drift_control_informations: ClockDriftControlInformation, O many [N4];
        upf_instance_id: NfInstanceId, C opt [N4 N4MB] "UPF Instance ID";
        pfcpasreq_flags: PfcpasreqFlags, O opt [N4];
        n6_delay_measurement_control_informations: N6DelayMeasurementControlInformation,
            C many [N4];
        n6_delay_measurement_protocols: N6DelayMeasurementProtocols, C opt [N4];
        operator_configurable_upf_capabilities: OperatorConfigurableUpfCapability, O many [N4];
        packet_inspection_functionality: PacketInspectionFunctionality, O opt [N4];
        user_plane_ip_resource_informations: UserPlaneIpResourceInformation, O many [ALL];
    }
}

group! {
    /// Answers an association setup request.
    AssociationSetupResponse AssociationSetupResponseView = message "7.4.4.2-1" {
        node_id: NodeId, M one [ALL];
        cause: Cause, M one [ALL];
        recovery_time_stamp: RecoveryTimeStamp, M one [ALL];
        up_function_features: UpFunctionFeatures, C opt [ALL];
        cp_function_features: CpFunctionFeatures, C opt [ALL];
        alternative_smf_ip_addresses: AlternativeSmfIpAddress, O many [N4 N4MB];
        smf_set_id: SmfSetId, C opt [N4 N4MB];
        pfcpasrsp_flags: PfcpasrspFlags, O opt [ALL];
        clock_drift_control_informations: ClockDriftControlInformation, C many [N4];
        ue_ip_address_pool_informations: UeIpAddressPoolInformation, O many [SXB N4];
        gtpu_path_qos_control_informations: GtpuPathQosControlInformation, C many [N4];
        upf_instance_id: NfInstanceId, C opt [N4 N4MB] "UPF Instance ID";
        n6_delay_measurement_control_informations: N6DelayMeasurementControlInformation,
            C many [N4];
        n6_delay_measurement_protocols: N6DelayMeasurementProtocols, C opt [N4];
        operator_configurable_upf_capabilities: OperatorConfigurableUpfCapability, O many [N4];
        packet_inspection_functionality: PacketInspectionFunctionality, O opt [N4];
        user_plane_ip_resource_informations: UserPlaneIpResourceInformation, O many [ALL];
    }
}

group! {
    /// Announces a change to an association.
    AssociationUpdateRequest AssociationUpdateRequestView = message "7.4.4.3-1" {
        node_id: NodeId, M one [ALL];
        up_function_features: UpFunctionFeatures, O opt [ALL];
        cp_function_features: CpFunctionFeatures, O opt [ALL];
        pfcp_association_release_request: PfcpAssociationReleaseRequest, C opt [ALL];
        graceful_release_period: GracefulReleasePeriod, C opt [ALL];
        pfcpaureq_flags: PfcpaureqFlags, O opt [SXA SXB SXC N4];
        alternative_smf_ip_addresses: AlternativeSmfIpAddress, O many [N4 N4MB];
        smf_set_id: SmfSetId, O opt [N4 N4MB];
        clock_drift_control_informations: ClockDriftControlInformation, C many [N4];
        ue_ip_address_pool_informations: UeIpAddressPoolInformation, O many [SXB N4];
        gtpu_path_qos_control_informations: GtpuPathQosControlInformation, C many [N4];
        ue_ip_address_usage_informations: UeIpAddressUsageInformation, O many [SXB N4];
        n6_delay_measurement_control_informations: N6DelayMeasurementControlInformation,
            C many [N4];
        n6_delay_measurement_protocols: N6DelayMeasurementProtocols, C opt [N4];
        operator_configurable_upf_capabilities: OperatorConfigurableUpfCapability, C many [N4];
        packet_inspection_functionality: PacketInspectionFunctionality, O opt [N4];
        user_plane_ip_resource_informations: UserPlaneIpResourceInformation, O many [ALL];
    }
}

group! {
    /// Answers an association update request.
    AssociationUpdateResponse AssociationUpdateResponseView = message "7.4.4.4-1" {
        node_id: NodeId, M one [ALL];
        cause: Cause, M one [ALL];
        up_function_features: UpFunctionFeatures, O opt [ALL];
        cp_function_features: CpFunctionFeatures, O opt [ALL];
        ue_ip_address_usage_informations: UeIpAddressUsageInformation, O many [SXB N4];
        n6_delay_measurement_protocols: N6DelayMeasurementProtocols, O opt [N4];
        operator_configurable_upf_capabilities: OperatorConfigurableUpfCapability, C many [N4];
        packet_inspection_functionality: PacketInspectionFunctionality, O opt [N4];
    }
}

group! {
    /// Requests the release of an association.
    AssociationReleaseRequest AssociationReleaseRequestView = message "7.4.4.5-1" {
        node_id: NodeId, M one [ALL];
    }
}

group! {
    /// Answers an association release request.
    AssociationReleaseResponse AssociationReleaseResponseView = message "7.4.4.6-1" {
        node_id: NodeId, M one [ALL];
        cause: Cause, M one [ALL];
    }
}

group! {
    /// Reports that the protocol version of a request is not supported.
    VersionNotSupportedResponse VersionNotSupportedResponseView = message "7.4.4.7" {
    }
}

group! {
    /// Provisions packet flow descriptions (PFDs) of applications.
    PfdManagementRequest PfdManagementRequestView = message "7.4.3.1-1" {
        application_id_s_pfds: ApplicationIdsPfds, C many [SXB SXC N4];
        node_id: NodeId, O opt [SXB SXC N4];
    }
}

group! {
    /// Answers a PFD management request.
    PfdManagementResponse PfdManagementResponseView = message "7.4.3.2-1" {
        cause: Cause, M one [SXB SXC N4];
        offending_ie: OffendingIe, C opt [SXB SXC N4];
        node_id: NodeId, O opt [SXB SXC N4];
        pfd_partial_failure_informations: PfdPartialFailureInformation, C many [SXB SXC N4];
    }
}

group! {
    /// Reports user plane events that do not belong to one session.
    NodeReportRequest NodeReportRequestView = message "7.4.5.1.1-1" {
        node_id: NodeId, M one [ALL];
        node_report_type: NodeReportType, M one [ALL];
        vendor_specific_node_report_type: VendorSpecificNodeReportType, C opt [ALL];
        user_plane_path_failure_report: UserPlanePathFailureReport, C rare [SXA SXB N4 N4MB];
        user_plane_path_recovery_report: UserPlanePathRecoveryReport, C rare [SXA SXB N4 N4MB];
        clock_drift_reports: ClockDriftReport, C many [N4];
        gtpu_path_qos_reports: GtpuPathQosReport, C many [N4] "GTP-U Path QoS Report";
        peer_up_restart_report: PeerUpRestartReport, C rare [SXA SXB N4];
        n6_delay_measurement_reports: N6DelayMeasurementReport,
            C many [N4] "N6 Delay Measurement Report";
    }
}

group! {
    /// Answers a node report request.
    NodeReportResponse NodeReportResponseView = message "7.4.5.2.1-1" {
        node_id: NodeId, M one [ALL];
        cause: Cause, M one [ALL];
        offending_ie: OffendingIe, C opt [ALL];
    }
}

group! {
    /// Requests the deletion of all sessions of the given sets of connections (FQ-CSIDs).
    SessionSetDeletionRequest SessionSetDeletionRequestView = message "7.4.6.1-1" {
        node_id: NodeId, M one [SXA SXB N4];
        fq_csids: FqCsid, C many [SXA SXB N4];
    }
}

group! {
    /// Answers a session set deletion request.
    SessionSetDeletionResponse SessionSetDeletionResponseView = message "7.4.6.2-1" {
        node_id: NodeId, M one [SXA SXB N4];
        cause: Cause, M one [SXA SXB N4];
        offending_ie: OffendingIe, C opt [SXA SXB N4];
    }
}

group! {
    /// Requests that sessions are moved to another CP function.
    SessionSetModificationRequest SessionSetModificationRequestView = message "7.4.7.1-1" {
        node_id: NodeId, M one [SXB N4];
        pfcp_session_change_infos: PfcpSessionChangeInfo, M many [SXB N4];
    }
}

group! {
    /// Answers a session set modification request.
    SessionSetModificationResponse SessionSetModificationResponseView = message "7.4.7.2-1" {
        node_id: NodeId, M one [SXB N4];
        cause: Cause, M one [SXB N4];
        offending_ie: OffendingIe, C opt [SXB N4];
    }
}
