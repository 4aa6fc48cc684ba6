//! The elements that `rs-pfcp` has a type for, by the name of our type.

use rs_pfcp::ie;
use strowger_pfcp::IeType;

/// Decodes a value and encodes it again, or returns the error as text.
pub type Again = fn(&[u8]) -> Result<Vec<u8>, String>;

/// Generates a row for each type.
macro_rules! elements {
    ($($ie:ident $module:ident::$name:ident;)*) => {
        /// Every element, with the function that decodes and encodes it.
        pub const ELEMENTS: &[(IeType, Again)] = &[$((IeType::$ie, |value| {
            let value = ie::$module::$name::unmarshal(value);
            let value = value.map_err(|error| error.to_string())?;
            Ok(value.marshal().to_vec())
        })),*];
    };
}

elements! {
    CREATE_PDR create_pdr::CreatePdr;
    PDI pdi::Pdi;
    CREATE_FAR create_far::CreateFar;
    FORWARDING_PARAMETERS forwarding_parameters::ForwardingParameters;
    DUPLICATING_PARAMETERS duplicating_parameters::DuplicatingParameters;
    CREATE_URR create_urr::CreateUrr;
    CREATE_QER create_qer::CreateQer;
    CREATED_PDR created_pdr::CreatedPdr;
    UPDATE_PDR update_pdr::UpdatePdr;
    UPDATE_FAR update_far::UpdateFar;
    UPDATE_FORWARDING_PARAMETERS update_forwarding_parameters::UpdateForwardingParameters;
    UPDATE_BAR_REPORT_RESPONSE
        update_bar_within_session_report_response::UpdateBarWithinSessionReportResponse;
    UPDATE_URR update_urr::UpdateUrr;
    UPDATE_QER update_qer::UpdateQer;
    REMOVE_PDR remove_pdr::RemovePdr;
    REMOVE_FAR remove_far::RemoveFar;
    REMOVE_URR remove_urr::RemoveUrr;
    REMOVE_QER remove_qer::RemoveQer;
    CAUSE cause::Cause;
    SOURCE_INTERFACE source_interface::SourceInterface;
    F_TEID f_teid::Fteid;
    NETWORK_INSTANCE network_instance::NetworkInstance;
    SDF_FILTER sdf_filter::SdfFilter;
    APPLICATION_ID application_id::ApplicationId;
    GATE_STATUS gate_status::GateStatus;
    MBR mbr::Mbr;
    GBR gbr::Gbr;
    QER_CORRELATION_ID qer_correlation_id::QerCorrelationId;
    PRECEDENCE precedence::Precedence;
    TRANSPORT_LEVEL_MARKING transport_level_marking::TransportLevelMarking;
    VOLUME_THRESHOLD volume_threshold::VolumeThreshold;
    TIME_THRESHOLD time_threshold::TimeThreshold;
    MONITORING_TIME monitoring_time::MonitoringTime;
    SUBSEQUENT_VOLUME_THRESHOLD subsequent_volume_threshold::SubsequentVolumeThreshold;
    SUBSEQUENT_TIME_THRESHOLD subsequent_time_threshold::SubsequentTimeThreshold;
    INACTIVITY_DETECTION_TIME inactivity_detection_time::InactivityDetectionTime;
    REPORTING_TRIGGERS reporting_triggers::ReportingTriggers;
    REDIRECT_INFORMATION redirect_information::RedirectInformation;
    REPORT_TYPE report_type::ReportType;
    OFFENDING_IE offending_ie::OffendingIe;
    FORWARDING_POLICY forwarding_policy::ForwardingPolicy;
    DESTINATION_INTERFACE destination_interface::DestinationInterface;
    APPLY_ACTION apply_action::ApplyAction;
    DOWNLINK_DATA_SERVICE_INFORMATION
        downlink_data_service_information::DownlinkDataServiceInformation;
    DOWNLINK_DATA_NOTIFICATION_DELAY
        downlink_data_notification_delay::DownlinkDataNotificationDelay;
    DL_BUFFERING_DURATION dl_buffering_duration::DlBufferingDuration;
    DL_BUFFERING_SUGGESTED_PACKET_COUNT
        dl_buffering_suggested_packet_count::DlBufferingSuggestedPacketCount;
    PFCPSMREQ_FLAGS pfcpsm_req_flags::PfcpsmReqFlags;
    PFCPSRRSP_FLAGS pfcpsrrsp_flags::PfcpsrrspFlags;
    LOAD_CONTROL_INFORMATION load_control_information::LoadControlInformation;
    SEQUENCE_NUMBER sequence_number::SequenceNumber;
    METRIC metric::Metric;
    OVERLOAD_CONTROL_INFORMATION overload_control_information::OverloadControlInformation;
    TIMER timer::Timer;
    PDR_ID pdr_id::PdrId;
    F_SEID fseid::Fseid;
    APPLICATION_IDS_PFDS application_ids_pfds::ApplicationIdsPfds;
    PFD_CONTEXT pfd_context::PfdContext;
    NODE_ID node_id::NodeId;
    PFD_CONTENTS pfd_contents::PfdContents;
    MEASUREMENT_METHOD measurement_method::MeasurementMethod;
    USAGE_REPORT_TRIGGER usage_report_trigger::UsageReportTrigger;
    MEASUREMENT_PERIOD measurement_period::MeasurementPeriod;
    FQ_CSID fq_csid::FqCsid;
    DURATION_MEASUREMENT duration_measurement::DurationMeasurement;
    TIME_OF_FIRST_PACKET time_of_first_packet::TimeOfFirstPacket;
    TIME_OF_LAST_PACKET time_of_last_packet::TimeOfLastPacket;
    QUOTA_HOLDING_TIME quota_holding_time::QuotaHoldingTime;
    DROPPED_DL_TRAFFIC_THRESHOLD dropped_dl_traffic_threshold::DroppedDlTrafficThreshold;
    TIME_QUOTA time_quota::TimeQuota;
    START_TIME start_time::StartTime;
    END_TIME end_time::EndTime;
    QUERY_URR query_urr::QueryUrr;
    URR_ID urr_id::UrrId;
    LINKED_URR_ID linked_urr_id::LinkedUrrId;
    DOWNLINK_DATA_REPORT downlink_data_report::DownlinkDataReport;
    OUTER_HEADER_CREATION outer_header_creation::OuterHeaderCreation;
    CREATE_BAR create_bar::CreateBar;
    UPDATE_BAR update_bar::UpdateBar;
    REMOVE_BAR remove_bar::RemoveBar;
    BAR_ID bar_id::BarId;
    CP_FUNCTION_FEATURES cp_function_features::CPFunctionFeatures;
    USAGE_INFORMATION usage_information::UsageInformation;
    APPLICATION_INSTANCE_ID application_instance_id::ApplicationInstanceId;
    FLOW_INFORMATION flow_information::FlowInformation;
    UE_IP_ADDRESS ue_ip_address::UeIpAddress;
    PACKET_RATE packet_rate::PacketRate;
    OUTER_HEADER_REMOVAL outer_header_removal::OuterHeaderRemoval;
    RECOVERY_TIME_STAMP recovery_time_stamp::RecoveryTimeStamp;
    DL_FLOW_LEVEL_MARKING dl_flow_level_marking::DlFlowLevelMarking;
    HEADER_ENRICHMENT header_enrichment::HeaderEnrichment;
    ERROR_INDICATION_REPORT error_indication_report::ErrorIndicationReport;
    MEASUREMENT_INFORMATION measurement_information::MeasurementInformation;
    NODE_REPORT_TYPE node_report_type::NodeReportType;
    USER_PLANE_PATH_FAILURE_REPORT user_plane_path_failure_report::UserPlanePathFailureReport;
    REMOTE_GTPU_PEER remote_gtpu_peer::RemoteGtpuPeer;
    UR_SEQN ur_seqn::UrSeqn;
    UPDATE_DUPLICATING_PARAMETERS update_duplicating_parameters::UpdateDuplicatingParameters;
    ACTIVATE_PREDEFINED_RULES activate_predefined_rules::ActivatePredefinedRules;
    DEACTIVATE_PREDEFINED_RULES deactivate_predefined_rules::DeactivatePredefinedRules;
    FAR_ID far_id::FarId;
    QER_ID qer_id::QerId;
    OCI_FLAGS oci_flags::OciFlags;
    PFCP_ASSOCIATION_RELEASE_REQUEST
        pfcp_association_release_request::PfcpAssociationReleaseRequest;
    GRACEFUL_RELEASE_PERIOD graceful_release_period::GracefulReleasePeriod;
    PDN_TYPE pdn_type::PdnType;
    FAILED_RULE_ID failed_rule_id::FailedRuleId;
    TIME_QUOTA_MECHANISM time_quota_mechanism::TimeQuotaMechanism;
    USER_PLANE_INACTIVITY_TIMER user_plane_inactivity_timer::UserPlaneInactivityTimer;
    AGGREGATED_URRS aggregated_urrs::AggregatedUrrs;
    MULTIPLIER multiplier::Multiplier;
    AGGREGATED_URR_ID aggregated_urr_id::AggregatedUrrId;
    SUBSEQUENT_VOLUME_QUOTA subsequent_volume_quota::SubsequentVolumeQuota;
    SUBSEQUENT_TIME_QUOTA subsequent_time_quota::SubsequentTimeQuota;
    RQI rqi::Rqi;
    QFI qfi::Qfi;
    QUERY_URR_REFERENCE query_urr_reference::QueryURRReference;
    ADDITIONAL_USAGE_REPORTS_INFORMATION
        additional_usage_reports_information::AdditionalUsageReportsInformation;
    CREATE_TRAFFIC_ENDPOINT create_traffic_endpoint::CreateTrafficEndpoint;
    CREATED_TRAFFIC_ENDPOINT created_traffic_endpoint::CreatedTrafficEndpoint;
    UPDATE_TRAFFIC_ENDPOINT update_traffic_endpoint::UpdateTrafficEndpoint;
    REMOVE_TRAFFIC_ENDPOINT remove_traffic_endpoint::RemoveTrafficEndpoint;
    TRAFFIC_ENDPOINT_ID create_traffic_endpoint::TrafficEndpointId;
    ETHERNET_PACKET_FILTER ethernet_packet_filter::EthernetPacketFilter;
    MAC_ADDRESS mac_address::MacAddress;
    C_TAG c_tag::CTag;
    S_TAG s_tag::STag;
    ETHERTYPE ethertype::Ethertype;
    PROXYING proxying::Proxying;
    ETHERNET_FILTER_ID ethernet_filter_id::EthernetFilterId;
    ETHERNET_FILTER_PROPERTIES ethernet_filter_properties::EthernetFilterProperties;
    SUGGESTED_BUFFERING_PACKETS_COUNT
        suggested_buffering_packets_count::SuggestedBufferingPacketsCount;
    USER_ID user_id::UserId;
    ETHERNET_PDU_SESSION_INFORMATION
        ethernet_pdu_session_information::EthernetPduSessionInformation;
    ETHERNET_TRAFFIC_INFORMATION ethernet_traffic_information::EthernetTrafficInformation;
    MAC_ADDRESSES_DETECTED mac_addresses_detected::MacAddressesDetected;
    MAC_ADDRESSES_REMOVED mac_addresses_removed::MacAddressesRemoved;
    ETHERNET_INACTIVITY_TIMER ethernet_inactivity_timer::EthernetInactivityTimer;
    ADDITIONAL_MONITORING_TIME additional_monitoring_time::AdditionalMonitoringTime;
    EVENT_QUOTA event_quota::EventQuota;
    EVENT_THRESHOLD event_threshold::EventThreshold;
    SUBSEQUENT_EVENT_QUOTA subsequent_event_quota::SubsequentEventQuota;
    SUBSEQUENT_EVENT_THRESHOLD subsequent_event_threshold::SubsequentEventThreshold;
    TRACE_INFORMATION trace_information::TraceInformation;
    FRAMED_ROUTE framed_route::FramedRoute;
    FRAMED_ROUTING framed_routing::FramedRouting;
    FRAMED_IPV6_ROUTE framed_ipv6_route::FramedIpv6Route;
    TIME_STAMP event_time_stamp::EventTimeStamp;
    AVERAGING_WINDOW averaging_window::AveragingWindow;
    PAGING_POLICY_INDICATOR paging_policy_indicator::PagingPolicyIndicator;
    APN_DNN apn_dnn::ApnDnn;
    PFCPSRREQ_FLAGS pfcpsr_req_flags::PfcpsrReqFlags;
    PFCPAUREQ_FLAGS pfcpau_req_flags::PfcpauReqFlags;
    ACTIVATION_TIME activation_time::ActivationTime;
    DEACTIVATION_TIME deactivation_time::DeactivationTime;
    CREATE_MAR create_mar::CreateMar;
    TGPP_ACCESS_FORWARDING_ACTION_INFORMATION
        tgpp_access_forwarding_action_information::TgppAccessForwardingActionInformation;
    NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION
        non_tgpp_access_forwarding_action_information::NonTgppAccessForwardingActionInformation;
    REMOVE_MAR remove_mar::RemoveMar;
    UPDATE_MAR update_mar::UpdateMar;
    MAR_ID mar_id::MarId;
    STEERING_FUNCTIONALITY steering_functionality::SteeringFunctionality;
    STEERING_MODE steering_mode::SteeringMode;
    WEIGHT weight::Weight;
    PRIORITY priority::Priority;
    UPDATE_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION
        update_tgpp_access_forwarding_action_information
        ::UpdateTgppAccessForwardingActionInformation;
    UPDATE_NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION
        update_non_tgpp_access_forwarding_action_information
        ::UpdateNonTgppAccessForwardingActionInformation;
    UE_IP_ADDRESS_POOL_IDENTITY ue_ip_address_pool_identity::UeIpAddressPoolIdentity;
    ALTERNATIVE_SMF_IP_ADDRESS alternative_smf_ip_address::AlternativeSmfIpAddress;
    PACKET_REPLICATION_AND_DETECTION_CARRY_ON_INFORMATION
        packet_replication_and_detection_carry_on_information
        ::PacketReplicationAndDetectionCarryOnInformation;
    SMF_SET_ID smf_set_id::SmfSetId;
    QUOTA_VALIDITY_TIME quota_validity_time::QuotaValidityTime;
    NUMBER_OF_REPORTS number_of_reports::NumberOfReports;
    PFCP_SESSION_RETENTION_INFORMATION
        pfcp_session_retention_information::PfcpSessionRetentionInformation;
    PFCPASRSP_FLAGS pfcpas_rsp_flags::PfcpasRspFlags;
    CP_PFCP_ENTITY_IP_ADDRESS cp_pfcp_entity_ip_address::CpPfcpEntityIpAddress;
    PFCPSEREQ_FLAGS pfcpse_req_flags::PfcpseReqFlags;
    USER_PLANE_PATH_RECOVERY_REPORT user_plane_path_recovery_report::UserPlanePathRecoveryReport;
    IP_MULTICAST_ADDRESSING_INFO_WITHIN_PFCP_SESSION_ESTABLISHMENT_REQUEST
        ip_multicast_addressing_info::IpMulticastAddressingInfo;
    JOIN_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT
        join_ip_multicast_information_within_usage_report
        ::JoinIpMulticastInformationWithinUsageReport;
    LEAVE_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT
        leave_ip_multicast_information_within_usage_report
        ::LeaveIpMulticastInformationWithinUsageReport;
    IP_MULTICAST_ADDRESS ip_multicast_address::IpMulticastAddress;
    SOURCE_IP_ADDRESS source_ip_address::SourceIpAddress;
    CREATE_BRIDGE_ROUTER_INFO create_bridge_info_for_tsc::CreateBridgeInfoForTsc;
    CREATED_BRIDGE_ROUTER_INFO created_bridge_info_for_tsc::CreatedBridgeInfoForTsc;
    PORT_NUMBER dstt_port_number::DsttPortNumber;
    NW_TT_PORT_NUMBER nwtt_port_number::NwttPortNumber;
    FIVE_GS_USER_PLANE_NODE_ID tsn_bridge_id::TsnBridgeId;
    TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_MODIFICATION_REQUEST
        tsc_management_information_within_session_modification_request
        ::TscManagementInformationWithinSessionModificationRequest;
    TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_MODIFICATION_RESPONSE
        tsc_management_information_within_session_modification_response
        ::TscManagementInformationWithinSessionModificationResponse;
    TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_REPORT_REQUEST
        tsc_management_information_within_session_report_request
        ::TscManagementInformationWithinSessionReportRequest;
    PORT_MANAGEMENT_INFORMATION_CONTAINER
        port_management_information_container::PortManagementInformationContainer;
    CLOCK_DRIFT_CONTROL_INFORMATION clock_drift_control_information::ClockDriftControlInformation;
    REQUESTED_CLOCK_DRIFT_INFORMATION
        requested_clock_drift_information::RequestedClockDriftInformation;
    CLOCK_DRIFT_REPORT clock_drift_report::ClockDriftReport;
    TIME_DOMAIN_NUMBER tsn_time_domain_number::TsnTimeDomainNumber;
    TIME_OFFSET_THRESHOLD time_offset_threshold::TimeOffsetThreshold;
    CUMULATIVE_RATERATIO_THRESHOLD cumulative_rate_ratio_threshold::CumulativeRateRatioThreshold;
    TIME_OFFSET_MEASUREMENT time_offset_measurement::TimeOffsetMeasurement;
    CUMULATIVE_RATERATIO_MEASUREMENT
        cumulative_rate_ratio_measurement::CumulativeRateRatioMeasurement;
    REMOVE_SRR remove_srr::RemoveSrr;
    CREATE_SRR create_srr::CreateSrr;
    UPDATE_SRR update_srr::UpdateSrr;
    SESSION_REPORT session_report::SessionReport;
    SRR_ID srr_id::SrrId;
    ACCESS_AVAILABILITY_CONTROL_INFORMATION
        access_availability_control_information::AccessAvailabilityControlInformation;
    REQUESTED_ACCESS_AVAILABILITY_INFORMATION
        requested_access_availability_information::RequestedAccessAvailabilityInformation;
    ACCESS_AVAILABILITY_REPORT access_availability_report::AccessAvailabilityReport;
    ACCESS_AVAILABILITY_INFORMATION access_availability_information::AccessAvailabilityInformation;
    PROVIDE_ATSSS_CONTROL_INFORMATION
        provide_atsss_control_information::ProvideAtsssControlInformation;
    ATSSS_CONTROL_PARAMETERS atsss_control_parameters::AtsssControlParameters;
    MPTCP_CONTROL_INFORMATION mptcp_control_information::MptcpControlInformation;
    ATSSS_LL_CONTROL_INFORMATION atsss_ll_control_information::AtsssLlControlInformation;
    PMF_CONTROL_INFORMATION pmf_control_information::PmfControlInformation;
    MPTCP_PARAMETERS mptcp_parameters::MptcpParameters;
    ATSSS_LL_PARAMETERS atsss_ll_parameters::AtsssLlParameters;
    PMF_PARAMETERS pmf_parameters::PmfParameters;
    MPTCP_ADDRESS_INFORMATION mptcp_address_information::MptcpAddressInformation;
    PMF_ADDRESS_INFORMATION pmf_address_information::PmfAddressInformation;
    ATSSS_LL_INFORMATION atsss_ll_information::AtsssLlInformation;
    DATA_NETWORK_ACCESS_IDENTIFIER data_network_access_identifier::DataNetworkAccessIdentifier;
    UE_IP_ADDRESS_POOL_INFORMATION ue_ip_address_pool_information::UeIpAddressPoolInformation;
    AVERAGE_PACKET_DELAY average_packet_delay::AveragePacketDelay;
    MINIMUM_PACKET_DELAY minimum_packet_delay::MinimumPacketDelay;
    MAXIMUM_PACKET_DELAY maximum_packet_delay::MaximumPacketDelay;
    QOS_REPORT_TRIGGER qos_report_trigger::QosReportTrigger;
    GTPU_PATH_QOS_CONTROL_INFORMATION
        gtpu_path_qos_control_information::GtpuPathQosControlInformation;
    GTPU_PATH_QOS_REPORT gtpu_path_qos_report::GtpuPathQosReport;
    QOS_INFORMATION_IN_GTPU_PATH_QOS_REPORT
        qos_information_in_gtpu_path_qos_report::QosInformationInGtpuPathQosReport;
    GTPU_PATH_INTERFACE_TYPE gtpu_path_interface_type::GtpuPathInterfaceType;
    QOS_MONITORING_PER_QOS_FLOW_CONTROL_INFORMATION
        qos_monitoring_per_qos_flow_control_information::QosMonitoringPerQosFlowControlInformation;
    REQUESTED_QOS_MONITORING requested_qos_monitoring::RequestedQosMonitoring;
    REPORTING_FREQUENCY reporting_frequency::ReportingFrequency;
    PACKET_DELAY_THRESHOLDS packet_delay_thresholds::PacketDelayThresholds;
    MINIMUM_WAIT_TIME minimum_wait_time::MinimumWaitTime;
    QOS_MONITORING_REPORT qos_monitoring_report::QosMonitoringReport;
    QOS_MONITORING_MEASUREMENT qos_monitoring_measurement::QosMonitoringMeasurement;
    MT_EDT_CONTROL_INFORMATION mtedt_control_information::MtedtControlInformation;
    DL_DATA_PACKETS_SIZE dl_data_packets_size::DlDataPacketsSize;
    QER_CONTROL_INDICATIONS qer_control_indications::QerControlIndications;
    NF_INSTANCE_ID nf_instance_id::NfInstanceId;
    ETHERNET_CONTEXT_INFORMATION ethernet_context_information::EthernetContextInformation;
    REDUNDANT_TRANSMISSION_PARAMETERS
        redundant_transmission_parameters::RedundantTransmissionParameters;
    UPDATED_PDR updated_pdr::UpdatedPdr;
    S_NSSAI snssai::Snssai;
    IP_VERSION ip_version::IpVersion;
    PFCPASREQ_FLAGS pfcpas_req_flags::PfcpasReqFlags;
    DATA_STATUS data_status::DataStatus;
    PROVIDE_RDS_CONFIGURATION_INFORMATION
        provide_rds_configuration_information::ProvideRdsConfigurationInformation;
    RDS_CONFIGURATION_INFORMATION rds_configuration_information::RdsConfigurationInformation;
    QUERY_PACKET_RATE_STATUS_IE_WITHIN_PFCP_SESSION_MODIFICATION_REQUEST
        query_packet_rate_status_within_session_modification_request
        ::QueryPacketRateStatusWithinSessionModificationRequest;
    MULTIPATH_APPLICABLE_INDICATION mptcp_applicable_indication::MptcpApplicableIndication;
    USER_PLANE_NODE_MANAGEMENT_INFORMATION_CONTAINER
        bridge_management_information_container::BridgeManagementInformationContainer;
    NUMBER_OF_UE_IP_ADDRESSES number_of_ue_ip_addresses::NumberOfUeIpAddresses;
    VALIDITY_TIMER validity_timer::ValidityTimer;
    REDUNDANT_TRANSMISSION_FORWARDING_PARAMETERS
        redundant_transmission_forwarding_parameters::RedundantTransmissionForwardingParameters;
    TRANSPORT_DELAY_REPORTING transport_delay_reporting::TransportDelayReporting;
    PARTIAL_FAILURE_INFORMATION partial_failure_information::PartialFailureInformation;
    OFFENDING_IE_INFORMATION offending_ie_information::OffendingIeInformation;
    RAT_TYPE rat_type::RatType;
    L2TP_TUNNEL_INFORMATION l2tp_tunnel_information::L2tpTunnelInformation;
    L2TP_SESSION_INFORMATION l2tp_session_information::L2tpSessionInformation;
    L2TP_USER_AUTHENTICATION l2tp_user_authentication::L2tpUserAuthentication;
    CREATED_L2TP_SESSION created_l2tp_session::CreatedL2tpSession;
    LNS_ADDRESS lns_address::LnsAddress;
    TUNNEL_PREFERENCE tunnel_preference::TunnelPreference;
    CALLING_NUMBER calling_number::CallingNumber;
    CALLED_NUMBER called_number::CalledNumber;
    L2TP_SESSION_INDICATIONS l2tp_session_indications::L2tpSessionIndications;
    DNS_SERVER_ADDRESS dns_server_address::DnsServerAddress;
    NBNS_SERVER_ADDRESS nbns_server_address::NbnsServerAddress;
    MAXIMUM_RECEIVE_UNIT maximum_receive_unit::MaximumReceiveUnit;
    THRESHOLDS thresholds::Thresholds;
    STEERING_MODE_INDICATOR steering_mode_indicator::SteeringModeIndicator;
    PFCP_SESSION_CHANGE_INFO pfcp_session_change_info::PfcpSessionChangeInfo;
    GROUP_ID group_id::GroupId;
    CP_IP_ADDRESS cp_ip_address::CpIpAddress;
    IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT
        ip_address_and_port_number_replacement::IpAddressAndPortNumberReplacement;
    DNS_QUERY_RESPONSE_FILTER dns_query_response_filter::DnsQueryResponseFilter;
    DIRECT_REPORTING_INFORMATION direct_reporting_information::DirectReportingInformation;
    EVENT_NOTIFICATION_URI event_notification_uri::EventNotificationUri;
    NOTIFICATION_CORRELATION_ID notification_correlation_id::NotificationCorrelationId;
    REPORTING_FLAGS reporting_flags::ReportingFlags;
    PREDEFINED_RULES_NAME predefined_rules_name::PredefinedRulesName;
    MBS_SESSION_N4MB_CONTROL_INFORMATION
        mbs_session_n4mb_control_information::MbsSessionN4mbControlInformation;
    MBS_MULTICAST_PARAMETERS mbs_multicast_parameters::MbsMulticastParameters;
    ADD_MBS_UNICAST_PARAMETERS add_mbs_unicast_parameters::AddMbsUnicastParameters;
    MBS_SESSION_N4MB_INFORMATION mbs_session_n4mb_information::MbsSessionN4mbInformation;
    REMOVE_MBS_UNICAST_PARAMETERS remove_mbs_unicast_parameters::RemoveMbsUnicastParameters;
    MBS_SESSION_IDENTIFIER mbs_session_identifier::MbsSessionIdentifier;
    MULTICAST_TRANSPORT_INFORMATION multicast_transport_information::MulticastTransportInformation;
    MBSN4MBREQ_FLAGS mbsn4mb_req_flags::Mbsn4mbReqFlags;
    LOCAL_INGRESS_TUNNEL local_ingress_tunnel::LocalIngressTunnel;
    MBS_UNICAST_PARAMETERS_ID mbs_unicast_parameters_id::MbsUnicastParametersId;
    MBS_SESSION_N4_CONTROL_INFORMATION
        mbs_session_n4_control_information::MbsSessionN4ControlInformation;
    MBS_SESSION_N4_INFORMATION mbs_session_n4_information::MbsSessionN4Information;
    MBSN4RESP_FLAGS mbsn4_resp_flags::Mbsn4RespFlags;
    TUNNEL_PASSWORD tunnel_password::TunnelPassword;
    AREA_SESSION_ID area_session_id::AreaSessionId;
    PEER_UP_RESTART_REPORT peer_up_restart_report::PeerUpRestartReport;
    DSCP_TO_PPI_CONTROL_INFORMATION dscp_to_ppi_control_information::DscpToPpiControlInformation;
    DSCP_TO_PPI_MAPPING_INFORMATION dscp_to_ppi_mapping_information::DscpToPpiMappingInformation;
    PFCPSDRSP_FLAGS pfcpsdrsp_flags::PfcpsdrspFlags;
    QER_INDICATIONS qer_indications::QerIndications;
    VENDOR_SPECIFIC_NODE_REPORT_TYPE vendor_specific_node_report_type::VendorSpecificNodeReportType;
    CONFIGURED_TIME_DOMAIN configured_time_domain::ConfiguredTimeDomain;
    METADATA metadata::Metadata;
    TRAFFIC_PARAMETER_MEASUREMENT_CONTROL_INFORMATION
        traffic_parameter_measurement_control_information
        ::TrafficParameterMeasurementControlInformation;
    TRAFFIC_PARAMETER_MEASUREMENT_REPORT
        traffic_parameter_measurement_report::TrafficParameterMeasurementReport;
    TRAFFIC_PARAMETER_THRESHOLD traffic_parameter_threshold::TrafficParameterThreshold;
    DL_PERIODICITY dl_periodicity::DlPeriodicity;
    N6_JITTER_MEASUREMENT n6_jitter_measurement::N6JitterMeasurement;
    TRAFFIC_PARAMETER_MEASUREMENT_INDICATION
        traffic_parameter_measurement_indication::TrafficParameterMeasurementIndication;
    UL_PERIODICITY ul_periodicity::UlPeriodicity;
    MPQUIC_CONTROL_INFORMATION mpquic_control_information::MpquicControlInformation;
    MPQUIC_PARAMETERS mpquic_parameters::MpquicParameters;
    MPQUIC_ADDRESS_INFORMATION mpquic_address_information::MpquicAddressInformation;
    TRANSPORT_MODE transport_mode::TransportMode;
    PROTOCOL_DESCRIPTION protocol_description::ProtocolDescription;
    REPORTING_SUGGESTION_INFO reporting_suggestion_info::ReportingSuggestionInfo;
    TL_CONTAINER tl_container::TlContainer;
    MEASUREMENT_INDICATION measurement_indication::MeasurementIndication;
    HPLMN_S_NSSAI hplmn_s_nssai::HplmnSNssai;
    MEDIA_TRANSPORT_PROTOCOL media_transport_protocol::MediaTransportProtocol;
    RTP_HEADER_EXTENSION_INFORMATION
        rtp_header_extension_information::RtpHeaderExtensionInformation;
    RTP_PAYLOAD_INFORMATION rtp_payload_information::RtpPayloadInformation;
    RTP_HEADER_EXTENSION_TYPE rtp_header_extension_type::RtpHeaderExtensionType;
    RTP_HEADER_EXTENSION_ID rtp_header_extension_id::RtpHeaderExtensionId;
    RTP_PAYLOAD_TYPE rtp_payload_type::RtpPayloadType;
    RTP_PAYLOAD_FORMAT rtp_payload_format::RtpPayloadFormat;
    EXTENDED_DL_BUFFERING_NOTIFICATION_POLICY
        extended_dl_buffering_notification_policy::ExtendedDlBufferingNotificationPolicy;
    MT_SDT_CONTROL_INFORMATION mt_sdt_control_information::MtSdtControlInformation;
    REPORTING_THRESHOLDS reporting_thresholds::ReportingThresholds;
    RTP_HEADER_EXTENSION_ADDITIONAL_INFORMATION
        rtp_header_extension_additional_information::RtpHeaderExtensionAdditionalInformation;
    MAPPED_N6_IP_ADDRESS mapped_n6_ip_address::MappedN6IpAddress;
    N6_ROUTING_INFORMATION n6_routing_information::N6RoutingInformation;
    URI uri::Uri;
    UE_LEVEL_MEASUREMENTS_CONFIGURATION
        ue_level_measurements_configuration::UeLevelMeasurementsConfiguration;
    REPORTING_CONTROL_INFORMATION reporting_control_information::ReportingControlInformation;
}
