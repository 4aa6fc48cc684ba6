//! Reports of a UP function.

use super::group;

group! {
    /// A usage report in the response to a query or a modification.
    UsageReportModificationResponse UsageReportModificationResponseView
        = USAGE_REPORT_MODIFICATION_RESPONSE "7.5.5.2-1" {
        urr_id: UrrId, M one [ALL; R17 SXA SXB SXC N4];
        ur_seqn: UrSeqn, M one [ALL; R17 SXA SXB SXC N4];
        usage_report_trigger: UsageReportTrigger, M one [ALL; R17 SXA SXB SXC N4];
        start_time: StartTime, C opt [ALL; R17 SXA SXB SXC N4];
        end_time: EndTime, C opt [ALL; R17 SXA SXB SXC N4];
        volume_measurement: VolumeMeasurement, C opt [ALL; R17 SXA SXB SXC N4];
        duration_measurement: DurationMeasurement, C opt [SXA SXB SXC N4];
        time_of_first_packet: TimeOfFirstPacket, C opt [SXB SXC N4 N4MB; R17 SXB SXC N4];
        time_of_last_packet: TimeOfLastPacket, C opt [SXB SXC N4 N4MB; R17 SXB SXC N4];
        usage_information: UsageInformation, C opt [SXA SXB SXC N4];
        query_urr_reference: QueryUrrReference, C opt [ALL; R17 SXA SXB SXC N4];
        ethernet_traffic_information: EthernetTrafficInformation, C rare [N4];
    }
}

group! {
    /// A usage report in the response to a deletion.
    UsageReportDeletionResponse UsageReportDeletionResponseView
        = USAGE_REPORT_DELETION_RESPONSE "7.5.7.2-1" {
        urr_id: UrrId, M one [ALL; R17 SXA SXB SXC N4];
        ur_seqn: UrSeqn, M one [ALL; R17 SXA SXB SXC N4];
        usage_report_trigger: UsageReportTrigger, M one [ALL; R17 SXA SXB SXC N4];
        start_time: StartTime, C opt [ALL; R17 SXA SXB SXC N4];
        end_time: EndTime, C opt [ALL; R17 SXA SXB SXC N4];
        volume_measurement: VolumeMeasurement, C opt [ALL; R17 SXA SXB SXC N4];
        duration_measurement: DurationMeasurement, C opt [SXA SXB SXC N4];
        time_of_first_packet: TimeOfFirstPacket, C opt [SXB SXC N4 N4MB; R17 SXB SXC N4];
        time_of_last_packet: TimeOfLastPacket, C opt [SXB SXC N4 N4MB; R17 SXB SXC N4];
        usage_information: UsageInformation, C opt [SXA SXB SXC N4];
        ethernet_traffic_information: EthernetTrafficInformation, C rare [N4];
    }
}

group! {
    /// A usage report sent by the UP function.
    UsageReportRequest UsageReportRequestView = USAGE_REPORT_REQUEST "7.5.8.3-1" {
        urr_id: UrrId, M one [ALL; R17 SXA SXB SXC N4];
        ur_seqn: UrSeqn, M one [ALL; R17 SXA SXB SXC N4];
        usage_report_trigger: UsageReportTrigger, M one [ALL; R17 SXA SXB SXC N4];
        start_time: StartTime, C opt [ALL; R17 SXA SXB SXC N4];
        end_time: EndTime, C opt [ALL; R17 SXA SXB SXC N4];
        volume_measurement: VolumeMeasurement, C opt [ALL; R17 SXA SXB SXC N4];
        duration_measurement: DurationMeasurement, C opt [SXA SXB SXC N4];
        application_detection_information: ApplicationDetectionInformation, C rare [SXB SXC N4];
        ue_ip_address: UeIpAddress, C opt [SXC N4];
        network_instance: NetworkInstance, C opt [SXC N4];
        time_of_first_packet: TimeOfFirstPacket, C opt [SXB SXC N4 N4MB; R17 SXB SXC N4];
        time_of_last_packet: TimeOfLastPacket, C opt [SXB SXC N4 N4MB; R17 SXB SXC N4];
        usage_information: UsageInformation, C opt [SXA SXB SXC N4];
        query_urr_reference: QueryUrrReference, C opt [ALL; R17 SXA SXB SXC N4];
        event_time_stamps: TimeStamp, C few [SXB SXC N4] "Event Time Stamp";
        ethernet_traffic_information: EthernetTrafficInformation, C rare [N4];
        join_ip_muticast_informations: JoinIpMulticastInformation,
            C few [N4] "Join IP Muticast Information";
        leave_ip_muticast_informations: LeaveIpMulticastInformation,
            C few [N4] "Leave IP Muticast Information";
        predefined_rules_names: PredefinedRulesName, O few [SXB N4];
    }
}

group! {
    /// A detected application.
    ApplicationDetectionInformation ApplicationDetectionInformationView
        = APPLICATION_DETECTION_INFORMATION "7.5.8.3-2" {
        application_id: ApplicationId, M one [SXB SXC N4];
        application_instance_id: ApplicationInstanceId, C opt [SXB SXC N4];
        flow_information: FlowInformation, C opt [SXB SXC N4];
        pdr_id: PdrId, O opt [SXB SXC N4];
    }
}

group! {
    /// A report about downlink packets that wait for a UE.
    DownlinkDataReport DownlinkDataReportView = DOWNLINK_DATA_REPORT "7.5.8.2-1" {
        pdr_ids: PdrId, M many [SXA N4 N4MB];
        downlink_data_service_information: DownlinkDataServiceInformation, C opt [SXA N4];
        dl_data_packets_size: DlDataPacketsSize, O opt [SXA];
        dl_data_status: DataStatus, O opt [N4] "DL Data Status";
    }
}

group! {
    /// Tunnels that are unknown at their remote endpoint.
    ErrorIndicationReport ErrorIndicationReportView = ERROR_INDICATION_REPORT "7.5.8.4-1" {
        remote_f_teids: FTeid, M many [SXA SXB N4 N4MB] "Remote F-TEID";
    }
}

group! {
    /// Ethernet addresses that appeared or disappeared.
    EthernetTrafficInformation EthernetTrafficInformationView
        = ETHERNET_TRAFFIC_INFORMATION "7.5.8.3-3" {
        mac_addresses_detecteds: MacAddressesDetected, C many [N4];
        mac_addresses_removeds: MacAddressesRemoved, C many [N4];
    }
}

group! {
    /// Peers that are unreachable.
    UserPlanePathFailureReport UserPlanePathFailureReportView
        = USER_PLANE_PATH_FAILURE_REPORT "7.4.5.1.2-1" {
        remote_gtpu_peers: RemoteGtpuPeer, M many [SXA SXB N4 N4MB];
    }
}

group! {
    /// Peers that are reachable again.
    UserPlanePathRecoveryReport UserPlanePathRecoveryReportView
        = USER_PLANE_PATH_RECOVERY_REPORT "7.4.5.1.3-1" {
        remote_gtpu_peers: RemoteGtpuPeer, M many [SXA SXB N4 N4MB];
    }
}

group! {
    /// A multicast group that was joined.
    JoinIpMulticastInformation JoinIpMulticastInformationView
        = JOIN_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT "7.5.8.3-4" {
        ip_multicast_address: IpMulticastAddress, M one [N4];
        source_ip_addresses: SourceIpAddress, C many [N4];
    }
}

group! {
    /// A multicast group that was left.
    LeaveIpMulticastInformation LeaveIpMulticastInformationView
        = LEAVE_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT "7.5.8.3-5" {
        ip_multicast_address: IpMulticastAddress, M one [N4];
        source_ip_addresses: SourceIpAddress, C many [N4];
    }
}
