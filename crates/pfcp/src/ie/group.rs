//! Grouped information elements, by purpose.

mod access;
mod bridge;
mod create;
mod created;
mod media;
mod multicast;
mod node;
mod quality;
mod remove;
mod report;
mod session;
mod tunnel;
mod update;

use super::members::group;

pub use access::{
    AccessAvailabilityControlInformation, AccessAvailabilityControlInformationView,
    AccessAvailabilityReport, AccessAvailabilityReportView, AtsssControlParameters,
    AtsssControlParametersView, AtsssLlParameters, AtsssLlParametersView, MpquicParameters,
    MpquicParametersView, MptcpParameters, MptcpParametersView, PmfParameters, PmfParametersView,
    ProvideAtsssControlInformation, ProvideAtsssControlInformationView,
};
pub use bridge::{
    EthernetContextInformation, EthernetContextInformationView,
    TscManagementInformationModificationRequest, TscManagementInformationModificationRequestView,
    TscManagementInformationModificationResponse, TscManagementInformationModificationResponseView,
    TscManagementInformationReportRequest, TscManagementInformationReportRequestView,
};
pub use create::{
    AdditionalMonitoringTime, AdditionalMonitoringTimeView, AggregatedUrrs, AggregatedUrrsView,
    CreateBar, CreateBarView, CreateFar, CreateFarView, CreateMar, CreateMarView, CreatePdr,
    CreatePdrView, CreateQer, CreateQerView, CreateSrr, CreateSrrView, CreateTrafficEndpoint,
    CreateTrafficEndpointView, CreateUrr, CreateUrrView, DuplicatingParameters,
    DuplicatingParametersView, EthernetPacketFilter, EthernetPacketFilterView,
    ForwardingParameters, ForwardingParametersView, IpMulticastAddressingInfo,
    IpMulticastAddressingInfoView, Non3gppAccessForwardingActionInformation,
    Non3gppAccessForwardingActionInformationView, Pdi, PdiView,
    TgppAccessForwardingActionInformation, TgppAccessForwardingActionInformationView,
};
pub use created::{
    CreatedBridgeRouterInfo, CreatedBridgeRouterInfoView, CreatedPdr, CreatedPdrView,
    CreatedTrafficEndpoint, CreatedTrafficEndpointView, LoadControlInformation,
    LoadControlInformationView, OverloadControlInformation, OverloadControlInformationView,
    PartialFailureInformation, PartialFailureInformationView, UpdatedPdr, UpdatedPdrView,
};
pub use media::{
    ExtendedTransportLevelMarking, ExtendedTransportLevelMarkingView,
    HeaderHandlingControlInformation, HeaderHandlingControlInformationView,
    HeaderHandlingControlRule, HeaderHandlingControlRuleView, HeaderHandlingReportingControlInfo,
    HeaderHandlingReportingControlInfoView, MoqInformation, MoqInformationView,
    ProtocolDescription, ProtocolDescriptionView, RtpHeaderExtensionInformation,
    RtpHeaderExtensionInformationView, RtpPayloadInformation, RtpPayloadInformationView,
};
pub use multicast::{
    AddMbsUnicastParameters, AddMbsUnicastParametersView, MbsMulticastParameters,
    MbsMulticastParametersView, MbsSessionN4ControlInformation, MbsSessionN4ControlInformationView,
    MbsSessionN4Information, MbsSessionN4InformationView, MbsSessionN4mbControlInformation,
    MbsSessionN4mbControlInformationView, MbsSessionN4mbInformation, MbsSessionN4mbInformationView,
    RemoveMbsUnicastParameters, RemoveMbsUnicastParametersView,
};
pub use node::{
    ApplicationIdsPfds, ApplicationIdsPfdsView, ClockDriftControlInformation,
    ClockDriftControlInformationView, ClockDriftReport, ClockDriftReportView,
    GtpuPathQosControlInformation, GtpuPathQosControlInformationView, GtpuPathQosReport,
    GtpuPathQosReportView, N6DelayMeasurementControlInformation,
    N6DelayMeasurementControlInformationView, N6DelayMeasurementReport,
    N6DelayMeasurementReportView, PeerUpRestartReport, PeerUpRestartReportView,
    PfcpSessionChangeInfo, PfcpSessionChangeInfoView, PfcpSessionRetentionInformation,
    PfcpSessionRetentionInformationView, PfdContext, PfdContextView, PfdPartialFailureInformation,
    PfdPartialFailureInformationView, ProtocolSpecificConfigurationParameters,
    ProtocolSpecificConfigurationParametersView, QosInformation, QosInformationView,
    UeIpAddressPoolInformation, UeIpAddressPoolInformationView, UeIpAddressUsageInformation,
    UeIpAddressUsageInformationView,
};
pub use quality::{
    DirectReportingInformation, DirectReportingInformationView, LocalN3N9TunnelInformation,
    LocalN3N9TunnelInformationView, PacketRateStatusReport,
    PacketRateStatusReportModificationResponse, PacketRateStatusReportModificationResponseView,
    PacketRateStatusReportView, QosMonitoringPerQosFlowControlInformation,
    QosMonitoringPerQosFlowControlInformationView, QosMonitoringReport, QosMonitoringReportView,
    QueryPacketRateStatus, QueryPacketRateStatusView, RedundantN3N9TransmissionInformation,
    RedundantN3N9TransmissionInformationView, RemoteN3N9TunnelInformation,
    RemoteN3N9TunnelInformationView, SessionReport, SessionReportDeletionResponse,
    SessionReportDeletionResponseView, SessionReportView,
    TrafficParameterMeasurementControlInformation,
    TrafficParameterMeasurementControlInformationView, TrafficParameterMeasurementReport,
    TrafficParameterMeasurementReportView, TscDirectReportingInformation,
    TscDirectReportingInformationView,
};
pub use remove::{
    QueryUrr, QueryUrrView, RemoveBar, RemoveBarView, RemoveFar, RemoveFarView, RemoveMar,
    RemoveMarView, RemovePdr, RemovePdrView, RemoveQer, RemoveQerView, RemoveSrr, RemoveSrrView,
    RemoveTrafficEndpoint, RemoveTrafficEndpointView, RemoveUrr, RemoveUrrView,
};
pub use report::{
    ApplicationDetectionInformation, ApplicationDetectionInformationView, DownlinkDataReport,
    DownlinkDataReportView, ErrorIndicationReport, ErrorIndicationReportView,
    EthernetTrafficInformation, EthernetTrafficInformationView, JoinIpMulticastInformation,
    JoinIpMulticastInformationView, LeaveIpMulticastInformation, LeaveIpMulticastInformationView,
    UsageReportDeletionResponse, UsageReportDeletionResponseView, UsageReportModificationResponse,
    UsageReportModificationResponseView, UsageReportRequest, UsageReportRequestView,
    UserPlanePathFailureReport, UserPlanePathFailureReportView, UserPlanePathRecoveryReport,
    UserPlanePathRecoveryReportView,
};
pub use session::{
    DscpToPpiControlInformation, DscpToPpiControlInformationView,
    ProvideRdsConfigurationInformation, ProvideRdsConfigurationInformationView,
    RedundantTransmissionForwardingParameters, RedundantTransmissionForwardingParametersView,
    RedundantTransmissionParameters, RedundantTransmissionParametersView, TransportDelayReporting,
    TransportDelayReportingView,
};
pub use tunnel::{
    CreatedL2tpSession, CreatedL2tpSessionView, L2tpSessionInformation, L2tpSessionInformationView,
    L2tpTunnelInformation, L2tpTunnelInformationView,
};
pub use update::{
    Update3gppAccessForwardingActionInformation, Update3gppAccessForwardingActionInformationView,
    UpdateBar, UpdateBarReportResponse, UpdateBarReportResponseView, UpdateBarView,
    UpdateDuplicatingParameters, UpdateDuplicatingParametersView, UpdateFar, UpdateFarView,
    UpdateForwardingParameters, UpdateForwardingParametersView, UpdateMar, UpdateMarView,
    UpdateNon3gppAccessForwardingActionInformation,
    UpdateNon3gppAccessForwardingActionInformationView, UpdatePdr, UpdatePdrView, UpdateQer,
    UpdateQerView, UpdateSrr, UpdateSrrView, UpdateTrafficEndpoint, UpdateTrafficEndpointView,
    UpdateUrr, UpdateUrrView,
};
