//! PFCP (TS 29.244) without I/O, clock or async.
//!
//! A datagram becomes frames; a frame is checked in one walk and read through a borrowed view, or
//! becomes an owned message. All three come from the same rows:
//!
//! ```text
//!  datagram --frames()--> Frame --MessageView::of()--> MessageView --to_message()--> Message
//!                                   |        |                                         |
//!                            validate()   to_json(), Display                       encode()
//! ```
//!
//! ```
//! use strowger_pfcp::{
//!     ApplyAction, CreateFar, CreatePdr, FTeid, Message, Pdi, Seid, Sequence,
//!     SessionEstablishmentRequest, SourceInterface,
//! };
//!
//! let address: std::net::IpAddr = [127, 0, 0, 1].into();
//! let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::new(7, address));
//! let pdr = CreatePdr::new(1, pdi).precedence(100).far_id(1);
//! let far = CreateFar::new(1, ApplyAction::DROP);
//! let body = SessionEstablishmentRequest::new(address, (1, address))
//!     .create_pdrs([pdr])
//!     .create_fars([far]);
//! let message = Message::session(Seid(0), Sequence::new(1), body);
//! assert_eq!(Message::decode(&message.encode()?)?, message);
//! # Ok::<(), strowger_pfcp::Error>(())
//! ```
//!
//! Beside the codec stand the state machines of the protocol, also without I/O: time is an
//! argument, `handle_*` takes in, `poll_*` gives out.

#![forbid(unsafe_code)]

mod association;
mod endpoint;
mod error;
mod ie;
#[cfg(feature = "serde")]
mod json;
mod message;
mod session;
mod text;
mod transaction;
mod validate;
mod wire;

pub use association::{
    Association, AssociationId, Associations, NodeName, Recovery, Setup, SetupRefused,
};
pub use endpoint::{
    Discard, Elements, Endpoint, EndpointConfig, EndpointStats, Event, Network, NetworkError,
    RequestError, Role, Transmit, answer_header, message,
};
pub use error::{Error, ErrorKind, IePath, PathStep};
pub use ie::{
    AccessAvailabilityControlInformation, AccessAvailabilityControlInformationView,
    AccessAvailabilityInformation, AccessAvailabilityReport, AccessAvailabilityReportView,
    AccessType, ActivatePredefinedRules, ActivationTime, AddMbsUnicastParameters,
    AddMbsUnicastParametersView, AdditionalMonitoringTime, AdditionalMonitoringTimeView,
    AdditionalUsageReportsInformation, AggregatedUrrId, AggregatedUrrs, AggregatedUrrsView,
    AlternativeSmfIpAddress, ApnDnn, ApplicationDetectionInformation,
    ApplicationDetectionInformationView, ApplicationId, ApplicationIdsPfds, ApplicationIdsPfdsView,
    ApplicationInstanceId, ApplyAction, AreaSessionId, AtsssControlParameters,
    AtsssControlParametersView, AtsssLlControlInformation, AtsssLlInformation, AtsssLlParameters,
    AtsssLlParametersView, AvailabilityStatus, AveragePacketDelay, AveragingWindow, BarId,
    BindingIndication, CTag, CalledNumber, CallingNumber, Cause, ClockDriftControlInformation,
    ClockDriftControlInformationView, ClockDriftReport, ClockDriftReportView, ConfiguredTimeDomain,
    CpFunctionFeatures, CpIpAddress, CpPfcpEntityIpAddress, CreateBar, CreateBarView,
    CreateBridgeRouterInfo, CreateFar, CreateFarView, CreateMar, CreateMarView, CreatePdr,
    CreatePdrView, CreateQer, CreateQerView, CreateSrr, CreateSrrView, CreateTrafficEndpoint,
    CreateTrafficEndpointView, CreateUrr, CreateUrrView, CreatedBridgeRouterInfo,
    CreatedBridgeRouterInfoView, CreatedL2tpSession, CreatedL2tpSessionView, CreatedPdr,
    CreatedPdrView, CreatedTrafficEndpoint, CreatedTrafficEndpointView, CsidNodeType,
    CumulativeRateratioMeasurement, CumulativeRateratioThreshold, DataNetworkAccessIdentifier,
    DataStatus, DeactivatePredefinedRules, DeactivationTime, Descriptor, DestinationInterface,
    DirectReportingInformation, DirectReportingInformationView, DlBufferingDuration,
    DlBufferingSuggestedPacketCount, DlDataPacketsSize, DlFlowLevelMarking, DlPeriodicity,
    DnsQueryResponseFilter, DnsServerAddress, DownlinkDataNotificationDelay, DownlinkDataReport,
    DownlinkDataReportView, DownlinkDataServiceInformation, DroppedDlTrafficThreshold,
    DscpToPpiControlInformation, DscpToPpiControlInformationView, DscpToPpiMappingInformation,
    DuplicatingParameters, DuplicatingParametersView, DurationMeasurement, EndTime,
    ErrorIndicationReport, ErrorIndicationReportView, EthernetContextInformation,
    EthernetContextInformationView, EthernetFilterId, EthernetFilterProperties,
    EthernetInactivityTimer, EthernetPacketFilter, EthernetPacketFilterView,
    EthernetPduSessionInformation, EthernetTrafficInformation, EthernetTrafficInformationView,
    Ethertype, EventNotificationUri, EventQuota, EventThreshold, ExpeditedTransferIndication,
    ExtendedDlBufferingNotificationPolicy, ExtendedTransportLevelMarking,
    ExtendedTransportLevelMarkingView, FSeid, FTeid, FailedRuleId, FarId, Field,
    FiveGsUserPlaneNodeId, FlowDirection, FlowInformation, ForwardingParameters,
    ForwardingParametersView, ForwardingPolicy, FqCsid, FramedIpv6Route, FramedRoute,
    FramedRouting, Gate, GateStatus, Gbr, GracefulReleasePeriod, Group, GroupId,
    GtpuPathInterfaceType, GtpuPathQosControlInformation, GtpuPathQosControlInformationView,
    GtpuPathQosReport, GtpuPathQosReportView, HeaderDetectionReference,
    HeaderDetectionSupportInformation, HeaderEnrichment, HeaderHandlingAction,
    HeaderHandlingCondition, HeaderHandlingControlId, HeaderHandlingControlInformation,
    HeaderHandlingControlInformationView, HeaderHandlingControlReference,
    HeaderHandlingControlRule, HeaderHandlingControlRuleId, HeaderHandlingControlRuleView,
    HeaderHandlingReportingControlInfo, HeaderHandlingReportingControlInfoView,
    HeaderHandlingReportingIndication, HeaderInformation, HeaderRemoval, HeaderValue, HmacKeyStamp,
    HplmnSNssai, Ie, IeType, InactivityDetectionTime, Interfaces,
    IpAddressAndPortNumberReplacement, IpMulticastAddress, IpMulticastAddressingInfo,
    IpMulticastAddressingInfoView, IpVersion, JobType, JoinIpMulticastInformation,
    JoinIpMulticastInformationView, KeyIdAndSharedSecret, Kind, L2tpSessionIndications,
    L2tpSessionInformation, L2tpSessionInformationView, L2tpTunnelInformation,
    L2tpTunnelInformationView, L2tpUserAuthentication, Leaf, LeaveIpMulticastInformation,
    LeaveIpMulticastInformationView, LinkSpecificMultipathIpAddress, LinkedUrrId, LnsAddress,
    LoadControlInformation, LoadControlInformationView, LocalIngressTunnel,
    LocalN3N9TunnelInformation, LocalN3N9TunnelInformationView, MacAddress, MacAddressesDetected,
    MacAddressesRemoved, MappedN6IpAddress, MarId, MaximumPacketDelay, MaximumReceiveUnit, Mbr,
    MbsMulticastParameters, MbsMulticastParametersView, MbsSessionIdentifier,
    MbsSessionN4ControlInformation, MbsSessionN4ControlInformationView, MbsSessionN4Information,
    MbsSessionN4InformationView, MbsSessionN4mbControlInformation,
    MbsSessionN4mbControlInformationView, MbsSessionN4mbInformation, MbsSessionN4mbInformationView,
    MbsUnicastParametersId, Mbsn4mbreqFlags, Mbsn4respFlags, MeasurementEndpointAddress,
    MeasurementEndpointPortNumber, MeasurementIndication, MeasurementInformation,
    MeasurementMethod, MeasurementPeriod, MeasurementReportingType,
    MediaRelatedInformationTransferInfo, MediaTransportProtocol, Member, Metadata, Metric,
    MinimumPacketDelay, MinimumWaitTime, MonitoringTime, MoqControlInformation, MoqInformation,
    MoqInformationView, MoqRelayIpAddress, MpquicAddressInformation, MpquicControlInformation,
    MpquicParameters, MpquicParametersView, MptcpAddressInformation, MptcpControlInformation,
    MptcpParameters, MptcpParametersView, MtEdtControlInformation, MtSdtControlInformation,
    MulticastTransportInformation, MultipathApplicableIndication, Multiplier,
    N6DelayMeasurementControlInformation, N6DelayMeasurementControlInformationId,
    N6DelayMeasurementControlInformationView, N6DelayMeasurementFailureInformation,
    N6DelayMeasurementInformation, N6DelayMeasurementProtocols, N6DelayMeasurementReport,
    N6DelayMeasurementReportView, N6JitterMeasurement, N6RoutingInformation, NbnsServerAddress,
    NetworkInstance, NfInstanceId, NodeId, NodeIdType, NodeReportType,
    Non3gppAccessForwardingActionInformation, Non3gppAccessForwardingActionInformationView,
    NotificationCorrelationId, NumberOfReports, NumberOfUeIpAddresses, NwTtPortNumber, OciFlags,
    OffendingIe, OffendingIeInformation, OnPathN6ConnectionInformation,
    OperatorConfigurableUpfCapability, OuterHeaderCreation, OuterHeaderRemoval,
    OverloadControlInformation, OverloadControlInformationView, PacketDelayThresholds,
    PacketInspectionFunctionality, PacketRate, PacketRateStatus, PacketRateStatusReport,
    PacketRateStatusReportModificationResponse, PacketRateStatusReportModificationResponseView,
    PacketRateStatusReportView, PacketReplicationAndDetectionCarryOnInformation,
    PagingPolicyIndicator, PartialFailureInformation, PartialFailureInformationView, Pdi, PdiView,
    PdnType, PdrId, PduSetImportance, PeerUpRestartReport, PeerUpRestartReportView,
    PfcpAssociationReleaseRequest, PfcpSessionChangeInfo, PfcpSessionChangeInfoView,
    PfcpSessionRetentionInformation, PfcpSessionRetentionInformationView, PfcpasreqFlags,
    PfcpasrspFlags, PfcpaureqFlags, PfcpsdrspFlags, PfcpsereqFlags, PfcpsmreqFlags, PfcpsrreqFlags,
    PfcpsrrspFlags, PfdContents, PfdContext, PfdContextView, PfdPartialFailureInformation,
    PfdPartialFailureInformationView, PmfAddressInformation, PmfControlInformation, PmfParameters,
    PmfParametersView, PortManagementInformationContainer, PortNumber, Precedence,
    PredefinedRulesName, Presence, Priority, ProtocolDescription, ProtocolDescriptionView,
    ProtocolSpecificConfigurationParameters, ProtocolSpecificConfigurationParametersView,
    ProvideAtsssControlInformation, ProvideAtsssControlInformationView,
    ProvideRdsConfigurationInformation, ProvideRdsConfigurationInformationView, Proxying,
    QerControlIndications, QerCorrelationId, QerId, QerIndications, Qfi, QosInformation,
    QosInformationView, QosMonitoringMeasurement, QosMonitoringPerQosFlowControlInformation,
    QosMonitoringPerQosFlowControlInformationView, QosMonitoringReport, QosMonitoringReportView,
    QosReportTrigger, QueryPacketRateStatus, QueryPacketRateStatusView, QueryUrr,
    QueryUrrReference, QueryUrrView, QuotaHoldingTime, QuotaValidityTime, RatType,
    RdsConfigurationInformation, RecoveryTimeStamp, RedirectAddressType, RedirectInformation,
    RedundantN3N9TransmissionInformation, RedundantN3N9TransmissionInformationView,
    RedundantTransmissionForwardingParameters, RedundantTransmissionForwardingParametersView,
    RedundantTransmissionParameters, RedundantTransmissionParametersView,
    RemainingDataReportingIndication, RemoteGtpuPeer, RemoteN3N9TunnelInformation,
    RemoteN3N9TunnelInformationView, RemoveBar, RemoveBarView, RemoveFar, RemoveFarView, RemoveMar,
    RemoveMarView, RemoveMbsUnicastParameters, RemoveMbsUnicastParametersView, RemovePdr,
    RemovePdrView, RemoveQer, RemoveQerView, RemoveSrr, RemoveSrrView, RemoveTrafficEndpoint,
    RemoveTrafficEndpointView, RemoveUrr, RemoveUrrView, ReportType, ReportingControlInformation,
    ReportingEndpointId, ReportingFlags, ReportingFrequency, ReportingSuggestionInfo,
    ReportingThresholds, ReportingTriggers, ReportingUrgency,
    RequestedAccessAvailabilityInformation, RequestedClockDriftInformation, RequestedQosMonitoring,
    Rest, Rqi, RtpHeaderExtensionAdditionalInformation, RtpHeaderExtensionFormat,
    RtpHeaderExtensionId, RtpHeaderExtensionInformation, RtpHeaderExtensionInformationView,
    RtpHeaderExtensionType, RtpPayloadFormat, RtpPayloadInformation, RtpPayloadInformationView,
    RtpPayloadType, RuleType, SNssai, STag, SdfFilter, SecurityModeOwampTwamp, SecurityModeStamp,
    SequenceNumber, SessionReflectorModeStamp, SessionReport, SessionReportDeletionResponse,
    SessionReportDeletionResponseView, SessionReportView, SignalingMethod, SmfChangeReason,
    SmfSetId, SourceInterface, SourceIpAddress, Span, SrrId, StartTime, SteeringFunctionality,
    SteeringMode, SteeringModeIndicator, SubsequentEventQuota, SubsequentEventThreshold,
    SubsequentTimeQuota, SubsequentTimeThreshold, SubsequentVolumeQuota, SubsequentVolumeThreshold,
    SuggestedBufferingPacketsCount, TgppAccessForwardingActionInformation,
    TgppAccessForwardingActionInformationView, TgppInterfaceType, Thresholds, TimeDomainNumber,
    TimeOfFirstPacket, TimeOfLastPacket, TimeOffsetMeasurement, TimeOffsetThreshold, TimeQuota,
    TimeQuotaMechanism, TimeStamp, TimeThreshold, Timer, TimerUnit, TlContainer, TraceInformation,
    TrafficEndpointId, TrafficParameterMeasurementControlInformation,
    TrafficParameterMeasurementControlInformationView, TrafficParameterMeasurementIndication,
    TrafficParameterMeasurementReport, TrafficParameterMeasurementReportView,
    TrafficParameterThreshold, TransportDelayReporting, TransportDelayReportingView,
    TransportLevelMarking, TransportLevelMarkingIndications, TransportMode,
    TscDirectReportingInformation, TscDirectReportingInformationView,
    TscManagementInformationModificationRequest, TscManagementInformationModificationRequestView,
    TscManagementInformationModificationResponse, TscManagementInformationModificationResponseView,
    TscManagementInformationReportRequest, TscManagementInformationReportRequestView,
    TunnelPassword, TunnelPreference, UeIpAddress, UeIpAddressPoolIdentity,
    UeIpAddressPoolInformation, UeIpAddressPoolInformationView, UeIpAddressUsageInformation,
    UeIpAddressUsageInformationView, UeLevelMeasurementsConfiguration, UlPeriodicity,
    UpFunctionFeatures, Update3gppAccessForwardingActionInformation,
    Update3gppAccessForwardingActionInformationView, UpdateBar, UpdateBarReportResponse,
    UpdateBarReportResponseView, UpdateBarView, UpdateDuplicatingParameters,
    UpdateDuplicatingParametersView, UpdateFar, UpdateFarView, UpdateForwardingParameters,
    UpdateForwardingParametersView, UpdateMar, UpdateMarView,
    UpdateNon3gppAccessForwardingActionInformation,
    UpdateNon3gppAccessForwardingActionInformationView, UpdatePdr, UpdatePdrView, UpdateQer,
    UpdateQerView, UpdateSrr, UpdateSrrView, UpdateTrafficEndpoint, UpdateTrafficEndpointView,
    UpdateUrr, UpdateUrrView, UpdatedPdr, UpdatedPdrView, UrSeqn, Uri, UrrId, UsageInformation,
    UsageReportDeletionResponse, UsageReportDeletionResponseView, UsageReportModificationResponse,
    UsageReportModificationResponseView, UsageReportRequest, UsageReportRequestView,
    UsageReportTrigger, UserId, UserPlaneInactivityTimer, UserPlaneIpResourceInformation,
    UserPlaneNodeManagementInformationContainer, UserPlanePathFailureReport,
    UserPlanePathFailureReportView, UserPlanePathRecoveryReport, UserPlanePathRecoveryReportView,
    ValidityTimer, Value, Values, VendorSpecificNodeReportType, VolumeMeasurement, VolumeQuota,
    VolumeThreshold, Weight, When, canonical, describe,
};
#[cfg(feature = "serde")]
pub use json::{JsonError, from_json, to_json};
pub use message::{
    AssociationReleaseRequest, AssociationReleaseRequestView, AssociationReleaseResponse,
    AssociationReleaseResponseView, AssociationSetupRequest, AssociationSetupRequestView,
    AssociationSetupResponse, AssociationSetupResponseView, AssociationUpdateRequest,
    AssociationUpdateRequestView, AssociationUpdateResponse, AssociationUpdateResponseView, Body,
    BodyView, HeartbeatRequest, HeartbeatRequestView, HeartbeatResponse, HeartbeatResponseView,
    Message, MessageType, MessageView, NodeReportRequest, NodeReportRequestView,
    NodeReportResponse, NodeReportResponseView, PfdManagementRequest, PfdManagementRequestView,
    PfdManagementResponse, PfdManagementResponseView, SessionDeletionRequest,
    SessionDeletionRequestView, SessionDeletionResponse, SessionDeletionResponseView,
    SessionEstablishmentRequest, SessionEstablishmentRequestView, SessionEstablishmentResponse,
    SessionEstablishmentResponseView, SessionModificationRequest, SessionModificationRequestView,
    SessionModificationResponse, SessionModificationResponseView, SessionReportRequest,
    SessionReportRequestView, SessionReportResponse, SessionReportResponseView,
    SessionSetDeletionRequest, SessionSetDeletionRequestView, SessionSetDeletionResponse,
    SessionSetDeletionResponseView, SessionSetModificationRequest,
    SessionSetModificationRequestView, SessionSetModificationResponse,
    SessionSetModificationResponseView, VersionNotSupportedResponse,
    VersionNotSupportedResponseView,
};
pub use session::{
    Allocator, Change, NoAllocator, Refusal, Rule, RuleId, RuleKind, RuleSet, UeWish,
};
pub use transaction::{
    Admission, AnswerLimits, Answers, Due, RequestId, Requests, RequestsFull, Retransmission,
    TransactionId,
};
pub use validate::{Finding, FindingKind, Rejection, findings, validate};
pub use wire::{
    Frame, Frames, Header, Index, Part, Parts, Seid, Sequence, Tlv, Tlvs, Writer, frames,
};
