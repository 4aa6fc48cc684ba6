//! Multi-access sessions.

use super::group;

group! {
    /// The control of reports about the availability of accesses.
    AccessAvailabilityControlInformation AccessAvailabilityControlInformationView
        = ACCESS_AVAILABILITY_CONTROL_INFORMATION "7.5.2.9-2" {
        requested_access_availability_information: RequestedAccessAvailabilityInformation,
            M one [N4];
    }
}

group! {
    /// A report about the availability of accesses.
    AccessAvailabilityReport AccessAvailabilityReportView = ACCESS_AVAILABILITY_REPORT "7.5.8.6-2" {
        access_availability_information: AccessAvailabilityInformation, M one [N4];
    }
}

group! {
    /// The kinds of steering that are requested.
    ProvideAtsssControlInformation ProvideAtsssControlInformationView
        = PROVIDE_ATSSS_CONTROL_INFORMATION "7.5.2.10-1" {
        mptcp_control_information: MptcpControlInformation, C opt [N4];
        atsss_ll_control_information: AtsssLlControlInformation, C opt [N4];
        pmf_control_information: PmfControlInformation, C opt [N4];
        mpquic_control_information: MpquicControlInformation, C opt [N4];
    }
}

group! {
    /// The parameters of each kind of steering.
    AtsssControlParameters AtsssControlParametersView = ATSSS_CONTROL_PARAMETERS "7.5.3.7-1" {
        mptcp_parameters: MptcpParameters, C rare [N4];
        atsss_ll_parameters: AtsssLlParameters, C rare [N4];
        pmf_parameters: PmfParameters, C many [N4];
        mpquic_parameters: MpquicParameters, C rare [N4];
    }
}

group! {
    /// The parameters of steering by MPTCP.
    MptcpParameters MptcpParametersView = MPTCP_PARAMETERS "7.5.3.7-2" {
        mptcp_address_information: MptcpAddressInformation, M one [N4];
        mptcp_link_specific_ip_address: LinkSpecificMultipathIpAddress,
            M one [N4] "MPTCP Link-Specific IP Address";
    }
}

group! {
    /// The parameters of lower-layer steering (ATSSS-LL).
    AtsssLlParameters AtsssLlParametersView = ATSSS_LL_PARAMETERS "7.5.3.7-3" {
        atsss_ll_information: AtsssLlInformation, M one [N4];
    }
}

group! {
    /// The parameters of the performance measurement function (PMF).
    PmfParameters PmfParametersView = PMF_PARAMETERS "7.5.3.7-4" {
        pmf_address_information: PmfAddressInformation, M one [N4];
        qos_flow_identifier: Qfi, O opt [N4] "QoS flow identifier";
    }
}

group! {
    /// The parameters of steering by MPQUIC.
    MpquicParameters MpquicParametersView = MPQUIC_PARAMETERS "7.5.3.7-5" {
        mpquic_address_information: MpquicAddressInformation, M one [N4];
        mpquic_link_specific_ip_address: LinkSpecificMultipathIpAddress,
            M one [N4; R17] "MPQUIC Link-Specific IP Address";
    }
}
