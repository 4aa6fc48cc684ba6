//! What else belongs to rules and sessions.

use super::group;
use crate::ie::{
    DscpToPpiMappingInformation, FTeid, NetworkInstance, OuterHeaderCreation, Qfi,
    RdsConfigurationInformation, RemoteGtpuPeer, TransportLevelMarking,
};

group! {
    /// The second tunnel of packets that come twice.
    RedundantTransmissionParameters RedundantTransmissionParametersView
        = REDUNDANT_TRANSMISSION_PARAMETERS "7.5.2.2-5" {
        local_f_teid_for_redundant_transmission: FTeid,
            M one [N4] "Local F-TEID for Redundant Transmission";
        network_instance_for_redundant_transmission: NetworkInstance,
            C opt [N4] "Network Instance for Redundant Transmission";
    }
}

group! {
    /// Where packets go a second time.
    RedundantTransmissionForwardingParameters RedundantTransmissionForwardingParametersView
        = REDUNDANT_TRANSMISSION_FORWARDING_PARAMETERS "7.5.2.3-4" {
        outer_header_creation: OuterHeaderCreation, M one [N4];
        network_instance_for_redundant_transmission: NetworkInstance,
            C opt [N4] "Network Instance for Redundant Transmission";
    }
}

group! {
    /// The delay of a transport network to report.
    TransportDelayReporting TransportDelayReportingView = TRANSPORT_DELAY_REPORTING "7.5.2.2-6" {
        preceding_ul_gtpu_peer: RemoteGtpuPeer, M one [N4] "Preceding UL GTP-U Peer";
        dscp: TransportLevelMarking, O opt [N4] "DSCP";
    }
}

group! {
    /// Paging policies of code points, for some QoS flows.
    DscpToPpiControlInformation DscpToPpiControlInformationView
        = DSCP_TO_PPI_CONTROL_INFORMATION "7.5.2.1-6" {
        dscp_to_ppi_mapping_informations: DscpToPpiMappingInformation, M many [N4];
        qfis: Qfi, O many [N4];
    }
}

group! {
    /// Whether reliable data service is wanted.
    ProvideRdsConfigurationInformation ProvideRdsConfigurationInformationView
        = PROVIDE_RDS_CONFIGURATION_INFORMATION "7.5.2.11-1" {
        rds_configuration_information: RdsConfigurationInformation, O opt [SXB N4];
    }
}
