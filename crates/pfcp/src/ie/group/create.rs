//! The components of a session.

use super::group;

group! {
    /// A packet detection rule: the packets to detect, and the rules that apply to them.
    CreatePdr CreatePdrView = CREATE_PDR "7.5.2.2-1" {
        pdr_id: PdrId, M one [ALL];
        precedence: Precedence, M opt [SXB SXC N4 N4MB];
        pdi: Pdi, M one [ALL];
        outer_header_removal: OuterHeaderRemoval, C opt [SXA SXB N4 N4MB];
        far_id: FarId, C opt [ALL];
        urr_ids: UrrId, C many [SXA SXB SXC N4];
        qer_ids: QerId, C many [SXB SXC N4 N4MB];
        activate_predefined_rules: ActivatePredefinedRules, C few [SXB SXC N4];
        activation_time: ActivationTime, O opt [SXB SXC N4];
        deactivation_time: DeactivationTime, O opt [SXB SXC N4];
        mar_id: MarId, C opt [N4];
        packet_replication_and_detection_carry_on_information:
            PacketReplicationAndDetectionCarryOnInformation, C opt [N4];
        ip_multicast_addressing_infos: IpMulticastAddressingInfo,
            O few [N4] "IP Multicast Addressing Info";
        ue_ip_address_pool_identity: UeIpAddressPoolIdentity, O rare [SXB N4];
        multipath_applicable_indication: MultipathApplicableIndication, C opt [N4];
        transport_delay_reporting: TransportDelayReporting, C rare [N4];
        rat_type: RatType, O opt [N4];
    }
}

group! {
    /// The criteria by which packets are detected.
    Pdi PdiView = PDI "7.5.2.2-2" {
        source_interface: SourceInterface, M one [ALL];
        local_f_teid: FTeid, O opt [SXA SXB N4] "Local F-TEID";
        local_ingress_tunnel: LocalIngressTunnel, C rare [N4MB];
        network_instance: NetworkInstance, O opt [ALL];
        redundant_transmission_detection_parameters: RedundantTransmissionParameters,
            O rare [N4] "Redundant Transmission Detection Parameters";
        ue_ip_addresses: UeIpAddress, O many [SXB SXC N4];
        mapped_n6_ip_address: MappedN6IpAddress, O rare [N4];
        n6_routing_information: N6RoutingInformation, O rare [N4];
        traffic_endpoint_ids: TrafficEndpointId, C few [ALL];
        sdf_filters: SdfFilter, O many [SXB SXC N4 N4MB];
        application_id: ApplicationId, O opt [SXB SXC N4 N4MB];
        ethernet_pdu_session_information: EthernetPduSessionInformation, O opt [N4];
        ethernet_packet_filters: EthernetPacketFilter, O few [N4];
        qfis: Qfi, O few [N4];
        framed_routes: FramedRoute, O few [SXB N4];
        framed_routing: FramedRouting, O opt [SXB N4];
        framed_ipv6_routes: FramedIpv6Route, O few [SXB N4];
        source_interface_type: TgppInterfaceType, C opt [SXA SXB N4 N4MB] "Source Interface Type";
        ip_multicast_addressing_infos: IpMulticastAddressingInfo,
            O few [N4 N4MB] "IP Multicast Addressing Info";
        dns_query_response_filters: DnsQueryResponseFilter, O few [N4];
        mbs_session_identifier: MbsSessionIdentifier, C rare [N4];
        area_session_id: AreaSessionId, C opt [N4];
        protocol_description: ProtocolDescription, O rare [N4];
        expedited_transfer_indication: ExpeditedTransferIndication, O opt [N4];
    }
}

group! {
    /// A forwarding action rule: the action for packets.
    CreateFar CreateFarView = CREATE_FAR "7.5.2.3-1" {
        far_id: FarId, M one [ALL];
        apply_action: ApplyAction, M one [ALL];
        forwarding_parameters: ForwardingParameters, C opt [SXA SXB SXC N4];
        duplicating_parameters: DuplicatingParameters, C few [SXA SXB];
        bar_id: BarId, O opt [SXA N4];
        redundant_transmission_forwarding_parameters: RedundantTransmissionForwardingParameters,
            C rare [ALL];
        mbs_multicast_parameters: MbsMulticastParameters, C rare [N4MB];
        add_mbs_unicast_parameters: AddMbsUnicastParameters, C few [N4MB];
    }
}

group! {
    /// The destination and treatment of forwarded packets.
    ForwardingParameters ForwardingParametersView = FORWARDING_PARAMETERS "7.5.2.3-2" {
        destination_interface: DestinationInterface, M one [SXA SXB SXC N4];
        network_instance: NetworkInstance, O opt [SXA SXB SXC N4];
        redirect_information: RedirectInformation, C rare [SXB SXC N4];
        outer_header_creation: OuterHeaderCreation, C opt [SXA SXB N4];
        transport_level_marking: TransportLevelMarking, C opt [SXA SXB N4];
        extended_transport_level_markings: ExtendedTransportLevelMarking, C few [N4];
        transport_level_marking_indications: TransportLevelMarkingIndications, C opt [N4];
        forwarding_policy: ForwardingPolicy, C rare [SXB SXC N4];
        metadata: Metadata, O rare [N4];
        header_enrichment: HeaderEnrichment, O rare [SXB SXC N4];
        linked_traffic_endpoint_id: TrafficEndpointId,
            C opt [SXA SXB N4] "Linked Traffic Endpoint ID";
        proxying: Proxying, C opt [N4];
        destination_interface_type: TgppInterfaceType,
            C opt [SXA SXB N4] "Destination Interface Type";
        data_network_access_identifier: DataNetworkAccessIdentifier, C rare [ALL];
        ip_address_and_port_number_replacement: IpAddressAndPortNumberReplacement, C rare [N4];
        n6_routing_information: N6RoutingInformation, O rare [N4];
        header_handling_control_rules: HeaderHandlingControlRule, C few [N4];
        on_path_n6_connection_information: OnPathN6ConnectionInformation, O rare [N4];
    }
}

group! {
    /// The destination of duplicated packets.
    DuplicatingParameters DuplicatingParametersView = DUPLICATING_PARAMETERS "7.5.2.3-3" {
        destination_interface: DestinationInterface, M one [SXA SXB];
        outer_header_creation: OuterHeaderCreation, C opt [SXA SXB];
        transport_level_marking: TransportLevelMarking, C opt [SXA SXB];
        forwarding_policy: ForwardingPolicy, C opt [SXA SXB];
    }
}

group! {
    /// A usage reporting rule: the usage to measure, and the reports about it.
    CreateUrr CreateUrrView = CREATE_URR "7.5.2.4-1" {
        urr_id: UrrId, M one [ALL; R17 SXA SXB SXC N4];
        measurement_method: MeasurementMethod, M one [ALL; R17 SXA SXB SXC N4];
        reporting_triggers: ReportingTriggers, M one [ALL; R17 SXA SXB SXC N4];
        measurement_period: MeasurementPeriod, C opt [ALL; R17 SXA SXB SXC N4];
        volume_threshold: VolumeThreshold, C opt [ALL; R17 SXA SXB SXC N4];
        volume_quota: VolumeQuota, C opt [SXB SXC N4];
        event_threshold: EventThreshold, C opt [SXB SXC N4];
        event_quota: EventQuota, C opt [SXB SXC N4];
        time_threshold: TimeThreshold, C opt [SXA SXB SXC N4];
        time_quota: TimeQuota, C opt [SXB SXC N4];
        quota_holding_time: QuotaHoldingTime, C opt [SXB SXC N4];
        dropped_dl_traffic_threshold: DroppedDlTrafficThreshold, C opt [SXA N4];
        quota_validity_time: QuotaValidityTime, C opt [SXB N4];
        monitoring_time: MonitoringTime, O opt [SXA SXB SXC N4];
        subsequent_volume_threshold: SubsequentVolumeThreshold, O rare [SXA SXB SXC N4];
        subsequent_time_threshold: SubsequentTimeThreshold, O opt [SXA SXB SXC N4];
        subsequent_volume_quota: SubsequentVolumeQuota, O rare [SXB SXC N4];
        subsequent_time_quota: SubsequentTimeQuota, O opt [SXB SXC N4];
        subsequent_event_threshold: SubsequentEventThreshold, O opt [SXB SXC N4];
        subsequent_event_quota: SubsequentEventQuota, O opt [SXB SXC N4];
        inactivity_detection_time: InactivityDetectionTime, C opt [SXB SXC N4];
        linked_urr_ids: LinkedUrrId, C few [SXB SXC N4 N4MB; R17 SXB SXC N4];
        measurement_information: MeasurementInformation, C opt [ALL];
        time_quota_mechanism: TimeQuotaMechanism, C opt [SXB];
        aggregated_urrs: AggregatedUrrs, C few [SXB];
        far_id_for_quota_action: FarId, C opt [SXB SXC N4] "FAR ID for Quota Action";
        ethernet_inactivity_timer: EthernetInactivityTimer, C opt [N4];
        additional_monitoring_times: AdditionalMonitoringTime, O few [SXA SXB SXC N4];
        number_of_reports: NumberOfReports, O opt [SXA SXB SXC N4];
        exempted_application_id_for_quota_actions: ApplicationId,
            O few [SXB SXC N4] "Exempted Application ID for Quota Action";
        exempted_sdf_filter_for_quota_actions: SdfFilter,
            O few [SXB SXC N4] "Exempted SDF Filter for Quota Action";
        user_plane_inactivity_timer: UserPlaneInactivityTimer, C opt [N4];
    }
}

group! {
    /// A QoS enforcement rule: the gates and rates of packets.
    CreateQer CreateQerView = CREATE_QER "7.5.2.5-1" {
        qer_id: QerId, M one [SXB SXC N4 N4MB];
        qer_correlation_id: QerCorrelationId, C opt [SXB N4];
        gate_status: GateStatus, M one [SXB SXC N4 N4MB];
        maximum_bitrate: Mbr, C opt [SXB SXC N4 N4MB] "Maximum Bitrate";
        guaranteed_bitrate: Gbr, C opt [SXB SXC N4 N4MB] "Guaranteed Bitrate";
        packet_rate: PacketRate, C opt [SXB N4];
        packet_rate_status: PacketRateStatus, C opt [SXB N4];
        dl_flow_level_marking: DlFlowLevelMarking, C opt [SXB SXC];
        qos_flow_identifier: Qfi, C opt [N4 N4MB] "QoS flow identifier";
        reflective_qos: Rqi, C opt [N4] "Reflective QoS";
        paging_policy_indicator: PagingPolicyIndicator, C opt [N4];
        averaging_window: AveragingWindow, O opt [N4];
        qer_control_indications: QerControlIndications, C opt [SXB N4];
        qer_indications: QerIndications, C opt [ALL; R17 N4MB];
    }
}

group! {
    /// A buffering action rule: the buffering of packets.
    CreateBar CreateBarView = CREATE_BAR "7.5.2.6-1" {
        bar_id: BarId, M one [SXA N4];
        downlink_data_notification_delay: DownlinkDataNotificationDelay, C opt [SXA];
        suggested_buffering_packets_count: SuggestedBufferingPacketsCount, C opt [SXB SXC N4];
        mt_edt_control_information: MtEdtControlInformation, O opt [SXA];
        mt_sdt_control_information: MtSdtControlInformation, O opt [N4];
        dl_buffering_duration: DlBufferingDuration, C opt [SXA N4; R17];
        dl_buffering_suggested_packet_count: DlBufferingSuggestedPacketCount, O opt [SXA N4; R17];
    }
}

group! {
    /// A traffic endpoint: a source of packets that several rules share.
    CreateTrafficEndpoint CreateTrafficEndpointView = CREATE_TRAFFIC_ENDPOINT "7.5.2.7-1" {
        traffic_endpoint_id: TrafficEndpointId, M one [ALL];
        local_f_teid: FTeid, O opt [SXA SXB N4] "Local F-TEID";
        network_instance: NetworkInstance, O opt [ALL];
        redundant_transmission_detection_parameters: RedundantTransmissionParameters,
            O rare [N4] "Redundant Transmission Detection Parameters";
        ue_ip_addresses: UeIpAddress, O many [SXB SXC N4];
        mapped_n6_ip_address: MappedN6IpAddress, O opt [N4];
        n6_routing_information: N6RoutingInformation, O rare [N4];
        ethernet_pdu_session_information: EthernetPduSessionInformation, O opt [N4];
        framed_routes: FramedRoute, O few [SXB N4];
        framed_routing: FramedRouting, O opt [SXB N4];
        framed_ipv6_routes: FramedIpv6Route, O few [SXB N4];
        qfis: Qfi, O few [N4];
        source_interface_type: TgppInterfaceType, C opt [SXA SXB N4 N4MB] "Source Interface Type";
        local_ingress_tunnel: LocalIngressTunnel, C rare [N4MB];
        ip_multicast_addressing_info: IpMulticastAddressingInfo,
            C rare [N4MB] "IP Multicast Addressing Info";
        mbs_session_identifier: MbsSessionIdentifier, C rare [N4];
        area_session_id: AreaSessionId, C opt [N4];
        rat_type: RatType, O opt [N4];
    }
}

group! {
    /// A filter for Ethernet frames.
    EthernetPacketFilter EthernetPacketFilterView = ETHERNET_PACKET_FILTER "7.5.2.2-3" {
        ethernet_filter_id: EthernetFilterId, C opt [N4];
        ethernet_filter_properties: EthernetFilterProperties, C opt [N4];
        mac_address: MacAddress, O opt [N4];
        ethertype: Ethertype, O opt [N4];
        c_tag: CTag, O opt [N4];
        s_tag: STag, O opt [N4];
        sdf_filters: SdfFilter, O many [N4];
    }
}

group! {
    /// Usage reporting rules that share a quota.
    AggregatedUrrs AggregatedUrrsView = AGGREGATED_URRS "7.5.2.4-2" {
        aggregated_urr_id: AggregatedUrrId, M one [SXB];
        multiplier: Multiplier, M one [SXB];
    }
}

group! {
    /// An additional time at which thresholds change.
    AdditionalMonitoringTime AdditionalMonitoringTimeView = ADDITIONAL_MONITORING_TIME "7.5.2.4-3" {
        monitoring_time: MonitoringTime, M one [SXA SXB SXC N4];
        subsequent_volume_threshold: SubsequentVolumeThreshold, O opt [SXA SXB SXC N4];
        subsequent_time_threshold: SubsequentTimeThreshold, O opt [SXA SXB SXC N4];
        subsequent_volume_quota: SubsequentVolumeQuota, O opt [SXB SXC N4];
        subsequent_time_quota: SubsequentTimeQuota, O opt [SXB SXC N4];
        subsequent_event_threshold: EventThreshold, O opt [SXB SXC N4] "Subsequent Event Threshold";
        subsequent_event_quota: EventQuota, O opt [SXB SXC N4] "Subsequent Event Quota";
    }
}

group! {
    /// A multi-access rule: the steering of packets of several accesses.
    CreateMar CreateMarView = CREATE_MAR "7.5.2.8-1" {
        mar_id: MarId, M one [N4];
        steering_functionality: SteeringFunctionality, M one [N4];
        steering_mode: SteeringMode, M one [N4];
        tgpp_access_forwarding_action_information: TgppAccessForwardingActionInformation,
            C rare [N4];
        non_tgpp_access_forwarding_action_information: Non3gppAccessForwardingActionInformation,
            C rare [N4];
        threshold_values: Thresholds, C opt [N4] "Threshold Values";
        steering_mode_indicator: SteeringModeIndicator, C opt [N4];
        transport_mode: TransportMode, C opt [N4];
    }
}

group! {
    /// The forwarding action for packets of 3GPP access.
    TgppAccessForwardingActionInformation TgppAccessForwardingActionInformationView
        = TGPP_ACCESS_FORWARDING_ACTION_INFORMATION "7.5.2.8-2" {
        far_id: FarId, M one [N4];
        weight: Weight, C opt [N4];
        priority: Priority, C opt [N4];
        urr_ids: UrrId, C many [N4];
        rat_type: RatType, O opt [N4];
    }
}

group! {
    /// The forwarding action for packets of non-3GPP access.
    Non3gppAccessForwardingActionInformation Non3gppAccessForwardingActionInformationView
        = NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION "7.5.2.8-3" {
        far_id: FarId, M one [N4];
        weight: Weight, C opt [N4];
        priority: Priority, C opt [N4];
        urr_ids: UrrId, C many [N4];
        rat_type: RatType, O opt [N4];
    }
}

group! {
    /// A session reporting rule: the events of a session to report.
    CreateSrr CreateSrrView = CREATE_SRR "7.5.2.9-1" {
        srr_id: SrrId, M one [N4];
        access_availability_control_information: AccessAvailabilityControlInformation, C rare [N4];
        qos_monitoring_per_qos_flow_control_informations: QosMonitoringPerQosFlowControlInformation,
            C many [N4];
        direct_reporting_information: DirectReportingInformation, C rare [N4];
        traffic_parameter_measurement_control_informations:
            TrafficParameterMeasurementControlInformation, C many [N4];
        reporting_control_information: ReportingControlInformation, C opt [N4];
    }
}

group! {
    /// An IP multicast address and its sources.
    IpMulticastAddressingInfo IpMulticastAddressingInfoView
        = IP_MULTICAST_ADDRESSING_INFO_WITHIN_PFCP_SESSION_ESTABLISHMENT_REQUEST "7.5.2.2-4" {
        ip_multicast_address: IpMulticastAddress, M one [N4 N4MB];
        source_ip_addresses: SourceIpAddress, O many [N4];
    }
}
