//! Changes to a session.

use super::group;

group! {
    /// Changes to a packet detection rule.
    UpdatePdr UpdatePdrView = UPDATE_PDR "7.5.4.2-1" {
        pdr_id: PdrId, M one [ALL];
        outer_header_removal: OuterHeaderRemoval, C opt [SXA SXB N4 N4MB];
        precedence: Precedence, C opt [SXB SXC N4 N4MB];
        pdi: Pdi, C rare [ALL];
        far_id: FarId, C opt [ALL];
        urr_id: UrrId, C opt [SXA SXB SXC N4];
        qer_id: QerId, C opt [SXB SXC N4 N4MB];
        activate_predefined_rules: ActivatePredefinedRules, C few [SXB SXC N4];
        deactivate_predefined_rules: DeactivatePredefinedRules, C few [SXB SXC N4];
        activation_time: ActivationTime, O opt [SXB SXC N4];
        deactivation_time: DeactivationTime, O opt [SXB SXC N4];
        ip_multicast_addressing_infos: IpMulticastAddressingInfo,
            O few [N4] "IP Multicast Addressing Info";
        transport_delay_reporting: TransportDelayReporting, C rare [N4];
        rat_type: RatType, O opt [N4];
    }
}

group! {
    /// Changes to a forwarding action rule.
    UpdateFar UpdateFarView = UPDATE_FAR "7.5.4.3-1" {
        far_id: FarId, M one [ALL];
        apply_action: ApplyAction, C opt [ALL];
        update_forwarding_parameters: UpdateForwardingParameters, C opt [SXA SXB SXC N4];
        update_duplicating_parameters: UpdateDuplicatingParameters, C few [SXA SXB];
        redundant_transmission_forwarding_parameters: RedundantTransmissionForwardingParameters,
            C rare [N4];
        bar_id: BarId, C opt [SXA N4];
        add_mbs_unicast_parameters: AddMbsUnicastParameters, C few [N4MB];
        remove_mbs_unicast_parameters: RemoveMbsUnicastParameters, C few [N4MB];
    }
}

group! {
    /// Changes to the destination and treatment of forwarded packets.
    UpdateForwardingParameters UpdateForwardingParametersView
        = UPDATE_FORWARDING_PARAMETERS "7.5.4.3-2" {
        destination_interface: DestinationInterface, C opt [SXA SXB SXC N4];
        network_instance: NetworkInstance, C opt [SXA SXB SXC N4];
        redirect_information: RedirectInformation, C rare [SXB SXC N4];
        outer_header_creation: OuterHeaderCreation, C opt [SXA SXB N4];
        transport_level_marking: TransportLevelMarking, C opt [SXA SXB N4];
        extended_transport_level_marking: ExtendedTransportLevelMarking, C rare [N4];
        transport_level_marking_indications: TransportLevelMarkingIndications, C opt [N4];
        forwarding_policy: ForwardingPolicy, C rare [SXB SXC N4];
        metadata: Metadata, C rare [N4];
        header_enrichment: HeaderEnrichment, C rare [SXB SXC N4];
        pfcpsmreq_flags: PfcpsmreqFlags, C opt [SXA SXB N4];
        linked_traffic_endpoint_id: TrafficEndpointId,
            C opt [SXA SXB N4] "Linked Traffic Endpoint ID";
        destination_interface_type: TgppInterfaceType,
            C opt [SXA SXB N4] "Destination Interface Type";
        data_network_access_identifier: DataNetworkAccessIdentifier, C rare [ALL];
        ip_address_and_port_number_replacement: IpAddressAndPortNumberReplacement, C rare [N4];
        header_handling_control_rule: HeaderHandlingControlRule, C rare [N4];
    }
}

group! {
    /// Changes to the destination of duplicated packets.
    UpdateDuplicatingParameters UpdateDuplicatingParametersView
        = UPDATE_DUPLICATING_PARAMETERS "7.5.4.3-3" {
        destination_interface: DestinationInterface, C opt [SXA SXB];
        outer_header_creation: OuterHeaderCreation, C opt [SXA SXB];
        transport_level_marking: TransportLevelMarking, C opt [SXA SXB];
        forwarding_policy: ForwardingPolicy, C opt [SXB];
    }
}

group! {
    /// Changes to a usage reporting rule.
    UpdateUrr UpdateUrrView = UPDATE_URR "7.5.4.4-1" {
        urr_id: UrrId, M one [SXA SXB SXC N4];
        measurement_method: MeasurementMethod, C opt [SXA SXB SXC N4];
        reporting_triggers: ReportingTriggers, C opt [ALL; R17 SXA SXB SXC N4];
        measurement_period: MeasurementPeriod, C opt [ALL; R17 SXA SXB SXC N4];
        volume_threshold: VolumeThreshold, C opt [ALL; R17 SXA SXB SXC N4];
        volume_quota: VolumeQuota, C opt [SXB SXC N4];
        time_threshold: TimeThreshold, C opt [SXA SXB SXC N4];
        time_quota: TimeQuota, C opt [SXB SXC N4];
        event_threshold: EventThreshold, C opt [SXB SXC N4];
        event_quota: EventQuota, C opt [SXB SXC N4];
        quota_holding_time: QuotaHoldingTime, C opt [SXB SXC N4];
        dropped_dl_traffic_threshold: DroppedDlTrafficThreshold, C opt [SXA N4];
        quota_validity_time: QuotaValidityTime, C opt [SXB N4];
        monitoring_time: MonitoringTime, C opt [SXA SXB SXC N4];
        subsequent_volume_threshold: SubsequentVolumeThreshold, C rare [SXA SXB SXC N4];
        subsequent_time_threshold: SubsequentTimeThreshold, C opt [SXA SXB SXC N4];
        subsequent_volume_quota: SubsequentVolumeQuota, C rare [SXB SXC N4];
        subsequent_time_quota: SubsequentTimeQuota, C opt [SXB SXC N4];
        subsequent_event_threshold: SubsequentEventThreshold, O opt [SXB SXC N4];
        subsequent_event_quota: SubsequentEventQuota, O opt [SXB SXC N4];
        inactivity_detection_time: InactivityDetectionTime, C opt [SXB SXC N4];
        linked_urr_ids: LinkedUrrId, C few [SXB SXC N4 N4MB; R17 SXB SXC N4];
        measurement_information: MeasurementInformation, C opt [ALL];
        time_quota_mechanism: TimeQuotaMechanism, C opt [SXB];
        aggregated_urrs: AggregatedUrrs, C few [SXB];
        far_id_for_quota_action: FarId, C opt [SXB SXC N4] "FAR ID for Quota Action";
        ethernet_inactivity_timer: EthernetInactivityTimer, C opt [N4];
        additional_monitoring_time: AdditionalMonitoringTime, O rare [SXA SXB SXC N4];
        number_of_reports: NumberOfReports, O opt [SXA SXB SXC N4];
        exempted_application_id_for_quota_actions: ApplicationId,
            C few [SXB SXC N4] "Exempted Application ID for Quota Action";
        exempted_sdf_filter_for_quota_actions: SdfFilter,
            C few [SXB SXC N4] "Exempted SDF Filter for Quota Action";
        user_plane_inactivity_timer: UserPlaneInactivityTimer, C opt [N4];
    }
}

group! {
    /// Changes to a QoS enforcement rule.
    UpdateQer UpdateQerView = UPDATE_QER "7.5.4.5-1" {
        qer_id: QerId, M one [SXB SXC N4 N4MB];
        qer_correlation_id: QerCorrelationId, C opt [SXB N4];
        gate_status: GateStatus, C opt [SXB SXC N4 N4MB];
        maximum_bitrate: Mbr, C opt [SXB SXC N4 N4MB] "Maximum Bitrate";
        guaranteed_bitrate: Gbr, C opt [SXB SXC N4 N4MB] "Guaranteed Bitrate";
        packet_rate: PacketRate, C opt [SXB N4];
        dl_flow_level_marking: DlFlowLevelMarking, C opt [SXB SXC];
        qos_flow_identifier: Qfi, C opt [N4 N4MB] "QoS flow identifier";
        reflective_qos: Rqi, C opt [N4] "Reflective QoS";
        paging_policy_indicator: PagingPolicyIndicator, C opt [N4];
        averaging_window: AveragingWindow, O opt [N4];
        qer_control_indications: QerControlIndications, C opt [SXB N4];
        qer_indications: QerIndications, C opt [ALL; R17];
    }
}

group! {
    /// Changes to a buffering action rule, in a modification.
    UpdateBar UpdateBarView = UPDATE_BAR "7.5.4.11-1" {
        bar_id: BarId, M one [SXA N4];
        downlink_data_notification_delay: DownlinkDataNotificationDelay, C opt [SXA; R17 SXA N4];
        suggested_buffering_packets_count: SuggestedBufferingPacketsCount, C opt [SXB SXC N4];
        dl_buffering_duration: DlBufferingDuration, C opt [SXA N4; R17];
        dl_buffering_suggested_packet_count: DlBufferingSuggestedPacketCount, O opt [SXA N4; R17];
        mt_edt_control_information: MtEdtControlInformation, O opt [SXA];
        mt_sdt_control_information: MtSdtControlInformation, O opt [N4];
        extended_dl_buffering_notification_policy: ExtendedDlBufferingNotificationPolicy,
            C opt [N4];
    }
}

group! {
    /// Changes to a buffering action rule, in the response to a report.
    UpdateBarReportResponse UpdateBarReportResponseView = UPDATE_BAR_REPORT_RESPONSE "7.5.9.2-1" {
        bar_id: BarId, M one [SXA N4];
        downlink_data_notification_delay: DownlinkDataNotificationDelay, C opt [SXA; R17 SXA N4];
        dl_buffering_duration: DlBufferingDuration, C opt [SXA N4];
        dl_buffering_suggested_packet_count: DlBufferingSuggestedPacketCount, O opt [SXA N4];
        suggested_buffering_packets_count: SuggestedBufferingPacketsCount, C opt [SXB SXC N4];
        extended_dl_buffering_notification_policy: ExtendedDlBufferingNotificationPolicy,
            C opt [N4];
    }
}

group! {
    /// Changes to a traffic endpoint.
    UpdateTrafficEndpoint UpdateTrafficEndpointView = UPDATE_TRAFFIC_ENDPOINT "7.5.4.13-1" {
        traffic_endpoint_id: TrafficEndpointId, M one [ALL];
        local_f_teid: FTeid, C opt [SXA N4] "Local F-TEID";
        network_instance: NetworkInstance, O opt [ALL];
        redundant_transmission_detection_parameters: RedundantTransmissionParameters,
            C rare [N4] "Redundant Transmission Detection Parameters";
        ue_ip_addresses: UeIpAddress, C many [SXB SXC N4];
        framed_routes: FramedRoute, C few [SXB N4];
        framed_routing: FramedRouting, C opt [SXB N4];
        framed_ipv6_routes: FramedIpv6Route, C few [SXB N4];
        qfis: Qfi, C few [N4];
        source_interface_type: TgppInterfaceType, C opt [SXA SXB N4 N4MB] "Source Interface Type";
        rat_type: RatType, O opt [N4];
    }
}

group! {
    /// Changes to a multi-access rule.
    UpdateMar UpdateMarView = UPDATE_MAR "7.5.4.16-1" {
        mar_id: MarId, M one [N4];
        steering_functionality: SteeringFunctionality, C opt [N4];
        steering_mode: SteeringMode, C opt [N4];
        update_tgpp_access_forwarding_action_information:
            Update3gppAccessForwardingActionInformation,
            C rare [N4];
        update_non_tgpp_access_forwarding_action_information:
            UpdateNon3gppAccessForwardingActionInformation,
            C rare [N4];
        tgpp_access_forwarding_action_information: TgppAccessForwardingActionInformation,
            C rare [N4];
        non_tgpp_access_forwarding_action_information: Non3gppAccessForwardingActionInformation,
            C rare [N4];
        threshold_values: Thresholds, C opt [N4] "Threshold values";
        steering_mode_indicator: SteeringModeIndicator, C opt [N4];
        transport_mode: TransportMode, C opt [N4];
    }
}

group! {
    /// Changes to the forwarding action for packets of 3GPP access.
    Update3gppAccessForwardingActionInformation Update3gppAccessForwardingActionInformationView
        = UPDATE_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION "7.5.4.16-2" {
        far_id: FarId, C opt [N4];
        weight: Weight, C opt [N4];
        priority: Priority, C opt [N4];
        urr_id: UrrId, C opt [N4];
        rat_type: RatType, O opt [N4];
    }
}

group! {
    /// Changes to the forwarding action for packets of non-3GPP access.
    UpdateNon3gppAccessForwardingActionInformation
        UpdateNon3gppAccessForwardingActionInformationView
        = UPDATE_NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION "7.5.4.16-3" {
        far_id: FarId, C opt [N4];
        weight: Weight, C opt [N4];
        priority: Priority, C opt [N4];
        urr_id: UrrId, C opt [N4];
        rat_type: RatType, O opt [N4];
    }
}

group! {
    /// Changes to a session reporting rule.
    UpdateSrr UpdateSrrView = UPDATE_SRR "7.5.4.20-1" {
        srr_id: SrrId, M one [N4];
        access_availability_control_information: AccessAvailabilityControlInformation, C rare [N4];
        qos_monitoring_per_qos_flow_control_informations: QosMonitoringPerQosFlowControlInformation,
            C many [N4];
        direct_reporting_information: DirectReportingInformation, C rare [N4];
        traffic_parameter_measurement_control_informations:
            TrafficParameterMeasurementControlInformation, C many [N4];
    }
}
