//! Information elements (IEs): their types, names and values.
//!
//! Each information element is one row of a table, from which everything else is derived:
//!
//! ```text
//!                       row: number, name, fields or members
//!                      /                |                   \
//!     owned value (FTeid)    view (borrows the bytes)     Descriptor (data)
//!     built, kept, encoded   read without allocation      checks, text, JSON, validation
//! ```
//!
//! The index lists all information elements of TS 29.244 V19.5.0 by family and name. A grouped IE
//! also has a view type: `CreatePdr` and `CreatePdrView`. The numbers are the constants of
//! [`IeType`], and the descriptions as data are in [`descriptor`].
//!
#![doc = include_str!("../INDEX.md")]

mod access;
mod address;
pub(crate) mod bits;
mod bridge;
mod cause;
pub(crate) mod check;
pub(crate) mod condition;
mod construct;
mod control;
mod describe;
pub mod descriptor;
pub(crate) mod element;
pub(crate) mod field;
pub(crate) mod field_input;
mod group;
mod interfaces;
pub(crate) mod leaf;
mod list;
mod media;
pub(crate) mod members;
mod multicast;
pub(crate) mod name;
mod network;
mod node;
mod number;
pub(crate) mod open;
mod quality;
mod registry;
pub(crate) mod release;
mod rest;
mod rule;
mod thin_list;
mod tunnel;
mod usage;
pub(crate) mod value;

pub use access::{
    AccessAvailabilityInformation, AccessType, AtsssLlControlInformation, AtsssLlInformation,
    AvailabilityStatus, LinkSpecificMultipathIpAddress, MarId, MpquicAddressInformation,
    MpquicControlInformation, MptcpAddressInformation, MptcpControlInformation,
    MultipathApplicableIndication, PmfAddressInformation, PmfControlInformation, Priority, RatType,
    RequestedAccessAvailabilityInformation, SteeringFunctionality, SteeringMode,
    SteeringModeIndicator, Thresholds, TransportMode, Weight,
};
pub use address::{
    CpPfcpEntityIpAddress, CsidNode, CsidNodeType, FSeid, FTeid, FqCsid, NodeId, NodeIdType,
    RemoteGtpuPeer, SourceIpAddress, UeIpAddress, UserPlaneIpResourceInformation,
};
pub use bridge::{
    ConfiguredTimeDomain, CreateBridgeRouterInfo, CumulativeRateratioMeasurement,
    CumulativeRateratioThreshold, FiveGsUserPlaneNodeId, NwTtPortNumber,
    PortManagementInformationContainer, PortNumber, RequestedClockDriftInformation,
    TimeDomainNumber, TimeOffsetMeasurement, TimeOffsetThreshold, TlContainer,
    UserPlaneNodeManagementInformationContainer,
};
pub use cause::Cause;
pub use control::{
    DlBufferingSuggestedPacketCount, DlDataPacketsSize, DscpToPpiMappingInformation,
    ExtendedDlBufferingNotificationPolicy, MacAddressesDetected, MacAddressesRemoved,
    MtEdtControlInformation, MtSdtControlInformation, NumberOfReports, OffendingIeInformation,
    OperatorConfigurableUpfCapability, PacketInspectionFunctionality,
    PacketReplicationAndDetectionCarryOnInformation, PfcpsdrspFlags, PredefinedRulesName,
    QuotaValidityTime, RdsConfigurationInformation, SmfChangeReason, SrrId, TraceInformation,
    VendorSpecificNodeReportType,
};
pub use element::Ie;
pub use group::{
    access::{
        AccessAvailabilityControlInformation, AccessAvailabilityControlInformationView,
        AccessAvailabilityReport, AccessAvailabilityReportView, AtsssControlParameters,
        AtsssControlParametersView, AtsssLlParameters, AtsssLlParametersView, MpquicParameters,
        MpquicParametersView, MptcpParameters, MptcpParametersView, PmfParameters,
        PmfParametersView, ProvideAtsssControlInformation, ProvideAtsssControlInformationView,
    },
    bridge::{
        EthernetContextInformation, EthernetContextInformationView,
        TscManagementInformationModificationRequest,
        TscManagementInformationModificationRequestView,
        TscManagementInformationModificationResponse,
        TscManagementInformationModificationResponseView, TscManagementInformationReportRequest,
        TscManagementInformationReportRequestView,
    },
    create::{
        AdditionalMonitoringTime, AdditionalMonitoringTimeView, AggregatedUrrs, AggregatedUrrsView,
        CreateBar, CreateBarView, CreateFar, CreateFarView, CreateMar, CreateMarView, CreatePdr,
        CreatePdrView, CreateQer, CreateQerView, CreateSrr, CreateSrrView, CreateTrafficEndpoint,
        CreateTrafficEndpointView, CreateUrr, CreateUrrView, DuplicatingParameters,
        DuplicatingParametersView, EthernetPacketFilter, EthernetPacketFilterView,
        ForwardingParameters, ForwardingParametersView, IpMulticastAddressingInfo,
        IpMulticastAddressingInfoView, Non3gppAccessForwardingActionInformation,
        Non3gppAccessForwardingActionInformationView, Pdi, PdiView,
        TgppAccessForwardingActionInformation, TgppAccessForwardingActionInformationView,
    },
    created::{
        CreatedBridgeRouterInfo, CreatedBridgeRouterInfoView, CreatedPdr, CreatedPdrView,
        CreatedTrafficEndpoint, CreatedTrafficEndpointView, LoadControlInformation,
        LoadControlInformationView, OverloadControlInformation, OverloadControlInformationView,
        PartialFailureInformation, PartialFailureInformationView, UpdatedPdr, UpdatedPdrView,
    },
    media::{
        ExtendedTransportLevelMarking, ExtendedTransportLevelMarkingView,
        HeaderHandlingControlInformation, HeaderHandlingControlInformationView,
        HeaderHandlingControlRule, HeaderHandlingControlRuleView,
        HeaderHandlingReportingControlInfo, HeaderHandlingReportingControlInfoView, MoqInformation,
        MoqInformationView, ProtocolDescription, ProtocolDescriptionView,
        RtpHeaderExtensionInformation, RtpHeaderExtensionInformationView, RtpPayloadInformation,
        RtpPayloadInformationView,
    },
    multicast::{
        AddMbsUnicastParameters, AddMbsUnicastParametersView, MbsMulticastParameters,
        MbsMulticastParametersView, MbsSessionN4ControlInformation,
        MbsSessionN4ControlInformationView, MbsSessionN4Information, MbsSessionN4InformationView,
        MbsSessionN4mbControlInformation, MbsSessionN4mbControlInformationView,
        MbsSessionN4mbInformation, MbsSessionN4mbInformationView, RemoveMbsUnicastParameters,
        RemoveMbsUnicastParametersView,
    },
    node::{
        ApplicationIdsPfds, ApplicationIdsPfdsView, ClockDriftControlInformation,
        ClockDriftControlInformationView, ClockDriftReport, ClockDriftReportView,
        GtpuPathQosControlInformation, GtpuPathQosControlInformationView, GtpuPathQosReport,
        GtpuPathQosReportView, N6DelayMeasurementControlInformation,
        N6DelayMeasurementControlInformationView, N6DelayMeasurementReport,
        N6DelayMeasurementReportView, PeerUpRestartReport, PeerUpRestartReportView,
        PfcpSessionChangeInfo, PfcpSessionChangeInfoView, PfcpSessionRetentionInformation,
        PfcpSessionRetentionInformationView, PfdContext, PfdContextView,
        PfdPartialFailureInformation, PfdPartialFailureInformationView,
        ProtocolSpecificConfigurationParameters, ProtocolSpecificConfigurationParametersView,
        QosInformation, QosInformationView, UeIpAddressPoolInformation,
        UeIpAddressPoolInformationView, UeIpAddressUsageInformation,
        UeIpAddressUsageInformationView,
    },
    quality::{
        DirectReportingInformation, DirectReportingInformationView, LocalN3N9TunnelInformation,
        LocalN3N9TunnelInformationView, PacketRateStatusReport,
        PacketRateStatusReportModificationResponse, PacketRateStatusReportModificationResponseView,
        PacketRateStatusReportView, QosMonitoringPerQosFlowControlInformation,
        QosMonitoringPerQosFlowControlInformationView, QosMonitoringReport,
        QosMonitoringReportView, QueryPacketRateStatus, QueryPacketRateStatusView,
        RedundantN3N9TransmissionInformation, RedundantN3N9TransmissionInformationView,
        RemoteN3N9TunnelInformation, RemoteN3N9TunnelInformationView, SessionReport,
        SessionReportDeletionResponse, SessionReportDeletionResponseView, SessionReportView,
        TrafficParameterMeasurementControlInformation,
        TrafficParameterMeasurementControlInformationView, TrafficParameterMeasurementReport,
        TrafficParameterMeasurementReportView, TscDirectReportingInformation,
        TscDirectReportingInformationView,
    },
    remove::{
        QueryUrr, QueryUrrView, RemoveBar, RemoveBarView, RemoveFar, RemoveFarView, RemoveMar,
        RemoveMarView, RemovePdr, RemovePdrView, RemoveQer, RemoveQerView, RemoveSrr,
        RemoveSrrView, RemoveTrafficEndpoint, RemoveTrafficEndpointView, RemoveUrr, RemoveUrrView,
    },
    report::{
        ApplicationDetectionInformation, ApplicationDetectionInformationView, DownlinkDataReport,
        DownlinkDataReportView, ErrorIndicationReport, ErrorIndicationReportView,
        EthernetTrafficInformation, EthernetTrafficInformationView, JoinIpMulticastInformation,
        JoinIpMulticastInformationView, LeaveIpMulticastInformation,
        LeaveIpMulticastInformationView, UsageReportDeletionResponse,
        UsageReportDeletionResponseView, UsageReportModificationResponse,
        UsageReportModificationResponseView, UsageReportRequest, UsageReportRequestView,
        UserPlanePathFailureReport, UserPlanePathFailureReportView, UserPlanePathRecoveryReport,
        UserPlanePathRecoveryReportView,
    },
    session::{
        DscpToPpiControlInformation, DscpToPpiControlInformationView,
        ProvideRdsConfigurationInformation, ProvideRdsConfigurationInformationView,
        RedundantTransmissionForwardingParameters, RedundantTransmissionForwardingParametersView,
        RedundantTransmissionParameters, RedundantTransmissionParametersView,
        TransportDelayReporting, TransportDelayReportingView,
    },
    tunnel::{
        CreatedL2tpSession, CreatedL2tpSessionView, L2tpSessionInformation,
        L2tpSessionInformationView, L2tpTunnelInformation, L2tpTunnelInformationView,
    },
    update::{
        Update3gppAccessForwardingActionInformation,
        Update3gppAccessForwardingActionInformationView, UpdateBar, UpdateBarReportResponse,
        UpdateBarReportResponseView, UpdateBarView, UpdateDuplicatingParameters,
        UpdateDuplicatingParametersView, UpdateFar, UpdateFarView, UpdateForwardingParameters,
        UpdateForwardingParametersView, UpdateMar, UpdateMarView,
        UpdateNon3gppAccessForwardingActionInformation,
        UpdateNon3gppAccessForwardingActionInformationView, UpdatePdr, UpdatePdrView, UpdateQer,
        UpdateQerView, UpdateSrr, UpdateSrrView, UpdateTrafficEndpoint, UpdateTrafficEndpointView,
        UpdateUrr, UpdateUrrView,
    },
};
pub use interfaces::Interfaces;
pub use list::{List, ListItem};
pub use media::{
    BindingIndication, DnsQueryResponseFilter, EventNotificationUri, ExpeditedTransferIndication,
    HeaderDetectionReference, HeaderDetectionSupportInformation, HeaderHandlingAction,
    HeaderHandlingCondition, HeaderHandlingControlId, HeaderHandlingControlReference,
    HeaderHandlingControlRuleId, HeaderHandlingReportingIndication, HeaderInformation, HeaderValue,
    MediaRelatedInformationTransferInfo, MediaTransportProtocol, Metadata, MoqControlInformation,
    MoqRelayIpAddress, NotificationCorrelationId, ReportingEndpointId,
    RtpHeaderExtensionAdditionalInformation, RtpHeaderExtensionFormat, RtpHeaderExtensionId,
    RtpHeaderExtensionType, RtpPayloadFormat, RtpPayloadType,
};
pub use multicast::{
    AreaSessionId, IpMulticastAddress, LocalIngressTunnel, MbsSessionIdentifier,
    MbsUnicastParametersId, Mbsn4mbreqFlags, Mbsn4respFlags, MulticastTransportInformation,
};
pub use network::{
    AlternativeSmfIpAddress, CpIpAddress, DataNetworkAccessIdentifier, GroupId,
    IpAddressAndPortNumberReplacement, IpVersion, MappedN6IpAddress, N6RoutingInformation,
    NfInstanceId, NumberOfUeIpAddresses, OnPathN6ConnectionInformation, SignalingMethod, SmfSetId,
    Uri, ValidityTimer,
};
pub use node::{
    ApnDnn, CpFunctionFeatures, DataStatus, DlBufferingDuration, FailedRuleId,
    GracefulReleasePeriod, HplmnSNssai, Metric, NodeReportType, OciFlags, OffendingIe, PdnType,
    PfcpAssociationReleaseRequest, PfcpasreqFlags, PfcpasrspFlags, PfcpaureqFlags, PfcpsereqFlags,
    PfcpsmreqFlags, PfcpsrreqFlags, PfcpsrrspFlags, RecoveryTimeStamp, RuleType, SNssai,
    SequenceNumber, Timer, TimerUnit, UeIpAddressPoolIdentity, UpFunctionFeatures, UserId,
};
pub use number::IeType;
pub use quality::{
    AveragePacketDelay, DlPeriodicity, GtpuPathInterfaceType, HmacKeyStamp, JobType,
    KeyIdAndSharedSecret, MaximumPacketDelay, MeasurementEndpointAddress,
    MeasurementEndpointPortNumber, MeasurementIndication, MeasurementReportingType,
    MinimumPacketDelay, MinimumWaitTime, N6DelayMeasurementControlInformationId,
    N6DelayMeasurementFailureInformation, N6DelayMeasurementInformation,
    N6DelayMeasurementProtocols, N6JitterMeasurement, PacketDelayThresholds, PacketRateStatus,
    PduSetImportance, QerControlIndications, QerIndications, QosMonitoringMeasurement,
    QosReportTrigger, RemainingDataReportingIndication, ReportingControlInformation,
    ReportingFlags, ReportingFrequency, ReportingSuggestionInfo, ReportingThresholds,
    ReportingUrgency, RequestedQosMonitoring, SecurityModeOwampTwamp, SecurityModeStamp,
    SessionReflectorModeStamp, TrafficParameterMeasurementIndication, TrafficParameterThreshold,
    TransportLevelMarkingIndications, UeLevelMeasurementsConfiguration, UlPeriodicity,
};
pub use release::{Release, UnknownRelease};
pub use rest::GroupRemainder;
pub use rule::{
    ActivatePredefinedRules, AggregatedUrrId, ApplicationId, ApplicationInstanceId, ApplyAction,
    AveragingWindow, BarId, CTag, DeactivatePredefinedRules, DestinationInterface,
    DlFlowLevelMarking, DownlinkDataNotificationDelay, DownlinkDataServiceInformation,
    EthernetFilterId, EthernetFilterProperties, EthernetPduSessionInformation, Ethertype, FarId,
    FlowDirection, FlowInformation, ForwardingPolicy, FramedIpv6Route, FramedRoute, FramedRouting,
    Gate, GateStatus, Gbr, HeaderEnrichment, HeaderRemoval, LinkedUrrId, MacAddress, Mbr,
    NetworkInstance, OuterHeaderCreation, OuterHeaderRemoval, PacketRate, PagingPolicyIndicator,
    PdrId, PfdContents, Precedence, Proxying, QerCorrelationId, QerId, Qfi, RedirectAddressType,
    RedirectInformation, Rqi, STag, SdfFilter, SourceInterface, SuggestedBufferingPacketsCount,
    TgppInterfaceType, TrafficEndpointId, TransportLevelMarking, UrrId,
};
pub use thin_list::ThinList;
pub use tunnel::{
    CalledNumber, CallingNumber, DnsServerAddress, L2tpSessionIndications, L2tpUserAuthentication,
    LnsAddress, MaximumReceiveUnit, NbnsServerAddress, TunnelPassword, TunnelPreference,
};
pub use usage::{
    ActivationTime, AdditionalUsageReportsInformation, DeactivationTime, DroppedDlTrafficThreshold,
    DurationMeasurement, EndTime, EthernetInactivityTimer, EventQuota, EventThreshold,
    InactivityDetectionTime, MeasurementInformation, MeasurementMethod, MeasurementPeriod,
    MonitoringTime, Multiplier, QueryUrrReference, QuotaHoldingTime, ReportType, ReportingTriggers,
    StartTime, SubsequentEventQuota, SubsequentEventThreshold, SubsequentTimeQuota,
    SubsequentTimeThreshold, SubsequentVolumeQuota, SubsequentVolumeThreshold, TimeOfFirstPacket,
    TimeOfLastPacket, TimeQuota, TimeQuotaMechanism, TimeStamp, TimeThreshold, UrSeqn,
    UsageInformation, UsageReportTrigger, UserPlaneInactivityTimer, VolumeMeasurement, VolumeQuota,
    VolumeThreshold,
};
pub use value::{Value, Values};

pub(crate) use descriptor::{
    Descriptor, Field, FieldKind, FieldPresence, Group, Leaf, Member, Presence, describe,
};
