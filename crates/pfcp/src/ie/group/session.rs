//! Further groups that belong to rules and sessions.

use super::group;

group! {
    /// The second tunnel of packets that arrive redundantly.
    RedundantTransmissionParameters RedundantTransmissionParametersView
        = REDUNDANT_TRANSMISSION_PARAMETERS "7.5.2.2-5" {
        local_f_teid_for_redundant_transmission: FTeid,
            M one [N4] "Local F-TEID for Redundant Transmission";
        network_instance_for_redundant_transmission: NetworkInstance,
            C opt [N4] "Network Instance for Redundant Transmission";
    }
}

group! {
    /// The second destination of packets that are sent redundantly.
    RedundantTransmissionForwardingParameters RedundantTransmissionForwardingParametersView
        = REDUNDANT_TRANSMISSION_FORWARDING_PARAMETERS "7.5.2.3-4" {
        outer_header_creation: OuterHeaderCreation, M one [N4];
        network_instance_for_redundant_transmission: NetworkInstance,
            C opt [N4] "Network Instance for Redundant Transmission";
    }
}

group! {
    /// The transport delay to report.
    TransportDelayReporting TransportDelayReportingView = TRANSPORT_DELAY_REPORTING "7.5.2.2-6" {
        preceding_ul_gtpu_peer: RemoteGtpuPeer, M one [N4] "Preceding UL GTP-U Peer";
        dscp: TransportLevelMarking, O opt [N4] "DSCP";
    }
}

group! {
    /// The mapping of code points to paging policies, for some QoS flows.
    DscpToPpiControlInformation DscpToPpiControlInformationView
        = DSCP_TO_PPI_CONTROL_INFORMATION "7.5.2.1-6" {
        dscp_to_ppi_mapping_informations: DscpToPpiMappingInformation, M many [N4];
        qfis: Qfi, O many [N4];
    }
}

group! {
    /// The request for the configuration of the reliable data service.
    ProvideRdsConfigurationInformation ProvideRdsConfigurationInformationView
        = PROVIDE_RDS_CONFIGURATION_INFORMATION "7.5.2.11-1" {
        rds_configuration_information: RdsConfigurationInformation, O opt [SXB N4];
    }
}
