//! Multicast and broadcast sessions.

use super::group;

group! {
    /// The parameters of a multicast session for the UP function of the session (MB-UPF).
    MbsSessionN4mbControlInformation MbsSessionN4mbControlInformationView
        = MBS_SESSION_N4MB_CONTROL_INFORMATION "7.5.2.1-4" {
        mbs_session_identifier: MbsSessionIdentifier, M one [N4MB];
        area_session_id: AreaSessionId, C opt [N4MB];
        mbsn4mbreq_flags: Mbsn4mbreqFlags, C opt [N4MB];
        multicast_transport_information_for_n3mb_and_or_n19mb: MulticastTransportInformation,
            C opt [N4MB] "Multicast Transport Information for N3mb and/or N19mb";
    }
}

group! {
    /// The parameters of a multicast session for the UP function of a UE.
    MbsSessionN4ControlInformation MbsSessionN4ControlInformationView
        = MBS_SESSION_N4_CONTROL_INFORMATION "7.5.2.1-5" {
        mbs_session_identifier: MbsSessionIdentifier, M one [N4];
        area_session_id: AreaSessionId, C opt [N4];
        multicast_transport_information: MulticastTransportInformation, C opt [N4];
    }
}

group! {
    /// The parameters of forwarding by multicast.
    MbsMulticastParameters MbsMulticastParametersView = MBS_MULTICAST_PARAMETERS "7.5.2.3-5" {
        destination_interface: DestinationInterface, M one [N4MB];
        network_instance: NetworkInstance, O opt [N4MB];
        outer_header_creation: OuterHeaderCreation, M one [N4MB];
        transport_level_marking: TransportLevelMarking, C opt [N4MB];
        destination_interface_types: TgppInterfaceType, O many [N4MB] "Destination Interface Type";
    }
}

group! {
    /// The parameters of forwarding to a single receiver.
    AddMbsUnicastParameters AddMbsUnicastParametersView = ADD_MBS_UNICAST_PARAMETERS "7.5.2.3-6" {
        destination_interface: DestinationInterface, M one [N4MB];
        mbs_unicast_parameters_id: MbsUnicastParametersId, M one [N4MB];
        network_instance: NetworkInstance, O opt [N4MB];
        outer_header_creation: OuterHeaderCreation, M one [N4MB];
        transport_level_marking: TransportLevelMarking, C opt [N4MB];
        destination_interface_type: TgppInterfaceType, O opt [N4MB] "Destination Interface Type";
    }
}

group! {
    /// The endpoint at which a multicast session arrives.
    MbsSessionN4mbInformation MbsSessionN4mbInformationView
        = MBS_SESSION_N4MB_INFORMATION "7.5.3.1-4" {
        multicast_transport_information: MulticastTransportInformation, C opt [N4MB];
    }
}

group! {
    /// A receiver that is removed.
    RemoveMbsUnicastParameters RemoveMbsUnicastParametersView
        = REMOVE_MBS_UNICAST_PARAMETERS "7.5.4.3-4" {
        mbs_unicast_parameters_id: MbsUnicastParametersId, M one [N4MB];
    }
}

group! {
    /// Information of the UP function of a UE about a multicast session.
    MbsSessionN4Information MbsSessionN4InformationView = MBS_SESSION_N4_INFORMATION "7.5.3.1-5" {
        mbs_session_identifier: MbsSessionIdentifier, M one [N4];
        area_session_id: AreaSessionId, C opt [N4];
        n19mb_dl_tunnel_id: FTeid, C opt [N4] "N19mb DL Tunnel ID";
        mbsn4resp_flags: Mbsn4respFlags, C opt [N4];
    }
}
