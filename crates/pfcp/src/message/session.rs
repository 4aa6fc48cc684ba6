//! Session-related messages.

use crate::ie::members::group;

group! {
    /// Requests a session.
    SessionEstablishmentRequest SessionEstablishmentRequestView = message "7.5.2.1-1" {
        node_id: NodeId, M one [ALL];
        cp_f_seid: FSeid, M one [ALL] "CP F-SEID";
        create_pdrs: CreatePdr, M many [ALL];
        create_fars: CreateFar, M many [ALL];
        create_urrs: CreateUrr, C many [ALL; R17 SXA SXB SXC N4];
        create_qers: CreateQer, C many [SXB SXC N4 N4MB];
        create_bar: CreateBar, O rare [SXA N4];
        create_traffic_endpoints: CreateTrafficEndpoint, C few [ALL];
        pdn_type: PdnType, C opt [SXA SXB N4];
        fq_csids: FqCsid, C few [SXA SXB N4];
        user_plane_inactivity_timer: UserPlaneInactivityTimer, O opt [SXB SXC N4 N4MB];
        user_id: UserId, O rare [SXA SXB SXC N4];
        trace_information: TraceInformation, O rare [SXA SXB SXC N4];
        apn_dnn: ApnDnn, O opt [SXA SXB N4 N4MB];
        create_mars: CreateMar, C few [N4];
        pfcpsereq_flags: PfcpsereqFlags, C opt [SXA SXB N4];
        create_bridge_router_info: CreateBridgeRouterInfo, C opt [N4];
        create_srrs: CreateSrr, O few [N4];
        provide_atsss_control_information: ProvideAtsssControlInformation, C rare [N4];
        recovery_time_stamp: RecoveryTimeStamp, O opt [SXA SXB SXC N4];
        s_nssai: SNssai, O opt [N4 N4MB];
        hplmn_s_nssai: HplmnSNssai, C opt [N4];
        provide_rds_configuration_information: ProvideRdsConfigurationInformation, O rare [SXB N4];
        rat_type: RatType, O opt [SXA SXB N4];
        l2tp_tunnel_informations: L2tpTunnelInformation, C few [SXB N4];
        l2tp_session_information: L2tpSessionInformation, C rare [SXB N4];
        group_id: GroupId, O opt [SXB N4];
        mbs_session_n4mb_control_information: MbsSessionN4mbControlInformation, M rare [N4MB];
        mbs_session_n4_control_informations: MbsSessionN4ControlInformation, C few [N4];
        dscp_to_ppi_control_informations: DscpToPpiControlInformation, O few [N4];
        tl_container: TlContainer, C opt [N4];
        trace_collection_entity_uri: Uri, O opt [SXA SXB SXC N4] "Trace Collection Entity URI";
        ue_level_measurements_configuration: UeLevelMeasurementsConfiguration, O rare [N4];
        alternative_smf_ip_address: AlternativeSmfIpAddress, O rare [N4; R17];
        moq_control_information: MoqControlInformation, C opt [N4];
    }
}

group! {
    /// Answers a session establishment request.
    SessionEstablishmentResponse SessionEstablishmentResponseView = message "7.5.3.1-1" {
        node_id: NodeId, M one [ALL];
        cause: Cause, M one [ALL];
        offending_ie: OffendingIe, C opt [ALL];
        up_f_seid: FSeid, C opt [ALL] "UP F-SEID";
        created_pdrs: CreatedPdr, C many [SXA SXB N4 N4MB];
        load_control_information: LoadControlInformation, O rare [ALL];
        overload_control_information: OverloadControlInformation, O rare [ALL];
        pgw_u_sgw_u_upf_fq_csid: FqCsid, C opt [SXA SXB N4] "PGW-U/SGW-U /UPF FQ-CSID";
        failed_rule_id: FailedRuleId, C opt [ALL];
        created_traffic_endpoint: CreatedTrafficEndpoint, C rare [SXA SXB N4 N4MB];
        created_bridge_router_info: CreatedBridgeRouterInfo, C rare [N4];
        atsss_control_parameters: AtsssControlParameters, C rare [N4];
        rds_configuration_information: RdsConfigurationInformation, O opt [SXB N4];
        partial_failure_informations: PartialFailureInformation, C few [SXB SXC N4 N4MB];
        created_l2tp_session: CreatedL2tpSession, O rare [SXB N4];
        mbs_session_n4mb_information: MbsSessionN4mbInformation, C rare [N4MB];
        mbs_session_n4_informations: MbsSessionN4Information, C few [N4];
        tl_container: TlContainer, C opt [N4];
        moq_information: MoqInformation, C rare [N4];
    }
}

group! {
    /// Requests a change to a session.
    SessionModificationRequest SessionModificationRequestView = message "7.5.4.1-1" {
        cp_f_seid: FSeid, C opt [ALL] "CP F-SEID";
        remove_pdrs: RemovePdr, C many [ALL];
        remove_fars: RemoveFar, C many [ALL];
        remove_urrs: RemoveUrr, C many [ALL; R17 SXA SXB SXC N4];
        remove_qers: RemoveQer, C many [SXB SXC N4 N4MB];
        remove_bar: RemoveBar, C rare [SXA N4];
        remove_traffic_endpoints: RemoveTrafficEndpoint, C few [ALL];
        create_pdrs: CreatePdr, C many [ALL];
        create_fars: CreateFar, C many [ALL];
        create_urrs: CreateUrr, C many [ALL; R17 SXA SXB SXC N4];
        create_qers: CreateQer, C many [SXB SXC N4 N4MB];
        create_bar: CreateBar, C rare [SXA N4];
        create_traffic_endpoints: CreateTrafficEndpoint, C few [ALL];
        update_pdrs: UpdatePdr, C many [ALL];
        update_fars: UpdateFar, C many [ALL];
        update_urrs: UpdateUrr, C many [ALL; R17 SXA SXB SXC N4];
        update_qers: UpdateQer, C many [SXB SXC N4 N4MB];
        update_bar: UpdateBar, C rare [SXA N4];
        update_traffic_endpoints: UpdateTrafficEndpoint, C few [ALL];
        pfcpsmreq_flags: PfcpsmreqFlags, C opt [ALL];
        query_urrs: QueryUrr, C many [ALL; R17 SXA SXB SXC N4];
        fq_csids: FqCsid, C few [SXA SXB N4];
        user_plane_inactivity_timer: UserPlaneInactivityTimer, C opt [SXB SXC N4 N4MB];
        query_urr_reference: QueryUrrReference, O opt [ALL; R17 SXA SXB SXC N4];
        trace_information: TraceInformation, O rare [SXA SXB SXC N4];
        remove_mars: RemoveMar, C few [N4];
        update_mars: UpdateMar, C few [N4];
        create_mars: CreateMar, C few [N4];
        node_id: NodeId, C opt [N4 N4MB];
        tsc_management_informations: TscManagementInformationModificationRequest,
            C few [N4] "TSC Management Information";
        remove_srrs: RemoveSrr, C few [N4];
        create_srrs: CreateSrr, C few [N4];
        update_srrs: UpdateSrr, C few [N4];
        provide_atsss_control_information: ProvideAtsssControlInformation, C rare [N4];
        ethernet_context_information: EthernetContextInformation, C rare [N4];
        access_availability_information: AccessAvailabilityInformation, O opt [N4];
        query_packet_rate_status: QueryPacketRateStatus, C few [SXB N4] "Query Packet Rate Status";
        s_nssai: SNssai, O opt [N4 N4MB];
        hplmn_s_nssai: HplmnSNssai, C opt [N4];
        dnn: ApnDnn, C opt [N4; R17] "DNN";
        group_id: GroupId, C opt [SXB N4];
        mbs_session_n4_control_informations: MbsSessionN4ControlInformation, C few [N4];
        dscp_to_ppi_control_information: DscpToPpiControlInformation, C rare [N4];
        tl_containers: TlContainer, C few [N4];
        trace_collection_entity_uri: Uri, O opt [SXA SXB SXC N4] "Trace Collection Entity URI";
        ue_level_measurements_configuration: UeLevelMeasurementsConfiguration, O rare [N4];
        alternative_smf_ip_address: AlternativeSmfIpAddress, O rare [N4; R17];
        moq_control_information: MoqControlInformation, C opt [N4];
        rat_type: RatType, C opt [SXA SXB N4];
    }
}

group! {
    /// Answers a session modification request.
    SessionModificationResponse SessionModificationResponseView = message "7.5.5.1-1" {
        cause: Cause, M one [ALL];
        offending_ie: OffendingIe, C opt [ALL];
        created_pdrs: CreatedPdr, C many [SXA SXB N4 N4MB];
        load_control_information: LoadControlInformation, O rare [ALL];
        overload_control_information: OverloadControlInformation, O rare [ALL];
        usage_reports: UsageReportModificationResponse, C many [ALL; R17 SXA SXB SXC N4];
        failed_rule_id: FailedRuleId, C opt [ALL];
        additional_usage_reports_information: AdditionalUsageReportsInformation,
            C opt [ALL; R17 SXA SXB SXC N4];
        created_updated_traffic_endpoints: CreatedTrafficEndpoint,
            C few [SXA SXB N4 N4MB] "Created/Updated Traffic Endpoint";
        tsc_management_informations: TscManagementInformationModificationResponse,
            C few [N4] "TSC Management Information";
        atsss_control_parameters: AtsssControlParameters, C rare [N4];
        updated_pdrs: UpdatedPdr, C few [SXB N4];
        packet_rate_status_reports: PacketRateStatusReportModificationResponse, C few [SXB N4];
        partial_failure_informations: PartialFailureInformation, C few [SXB SXC N4 N4MB];
        mbs_session_n4_informations: MbsSessionN4Information, C few [N4];
        tl_containers: TlContainer, C few [N4];
        moq_information: MoqInformation, C rare [N4];
    }
}

group! {
    /// Requests the deletion of a session.
    SessionDeletionRequest SessionDeletionRequestView = message "7.5.6-1" {
        tl_containers: TlContainer, C many [N4];
        node_id: NodeId, C opt [N4 N4MB; R17];
        cp_f_seid: FSeid, C opt [N4 N4MB; R17] "CP F-SEID";
    }
}

group! {
    /// Answers a session deletion request.
    SessionDeletionResponse SessionDeletionResponseView = message "7.5.7.1-1" {
        cause: Cause, M one [ALL];
        offending_ie: OffendingIe, C opt [ALL];
        load_control_information: LoadControlInformation, O rare [ALL];
        overload_control_information: OverloadControlInformation, O rare [ALL];
        usage_reports: UsageReportDeletionResponse, C many [ALL; R17 SXA SXB SXC N4];
        additional_usage_reports_information: AdditionalUsageReportsInformation,
            C opt [ALL; R17 SXA SXB SXC N4];
        packet_rate_status_report: PacketRateStatusReport, C rare [SXB N4];
        mbs_session_n4_informations: MbsSessionN4Information, C few [N4];
        pfcpsdrsp_flags: PfcpsdrspFlags, C opt [SXA SXB SXC N4];
        tl_containers: TlContainer, C few [N4];
        session_reports: SessionReportDeletionResponse, O few [N4];
    }
}

group! {
    /// Reports events of a session.
    SessionReportRequest SessionReportRequestView = message "7.5.8.1-1" {
        report_type: ReportType, M one [ALL];
        downlink_data_report: DownlinkDataReport, C rare [SXA N4 N4MB];
        usage_reports: UsageReportRequest, C many [ALL; R17 SXA SXB SXC N4];
        error_indication_report: ErrorIndicationReport, C rare [SXA SXB N4 N4MB];
        load_control_information: LoadControlInformation, O rare [ALL];
        overload_control_information: OverloadControlInformation, O rare [ALL];
        additional_usage_reports_information: AdditionalUsageReportsInformation,
            C opt [ALL; R17 SXA SXB SXC N4];
        pfcpsrreq_flags: PfcpsrreqFlags, C opt [SXA SXB SXC N4];
        old_cp_f_seid: FSeid, C opt [N4 N4MB] "Old CP F-SEID";
        smf_change_reason: SmfChangeReason, O opt [N4 N4MB];
        packet_rate_status_report: PacketRateStatusReport, C rare [SXB N4];
        tsc_management_informations: TscManagementInformationReportRequest,
            C few [N4] "TSC Management Information";
        session_reports: SessionReport, C few [N4];
        cause: Cause, O opt [SXB N4];
    }
}

group! {
    /// Answers a session report request.
    SessionReportResponse SessionReportResponseView = message "7.5.9.1-1" {
        cause: Cause, M one [ALL];
        offending_ie: OffendingIe, C opt [ALL];
        update_bar: UpdateBarReportResponse, C rare [SXA N4];
        pfcpsrrsp_flags: PfcpsrrspFlags, C opt [SXA N4];
        cp_f_seid: FSeid, O opt [N4 N4MB] "CP F-SEID";
        n4_u_f_teid: FTeid, O opt [N4] "N4-u F-TEID";
        alternative_smf_ip_addresses: AlternativeSmfIpAddress, O many [N4 N4MB];
        pgw_c_smf_fq_csid: FqCsid, O opt [SXB N4] "PGW-C/SMF FQ-CSID";
        group_id: GroupId, C opt [SXB N4];
        node_id: NodeId, C opt [N4 N4MB; R17 N4];
    }
}
