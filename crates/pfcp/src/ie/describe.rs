use super::IeType;
use super::descriptor::{Descriptor, Group};
use super::element::Ie;
use crate::error::Error;
use crate::wire::{Index, Writer};

/// Defines [`describe`] for the types that have a row.
macro_rules! described {
    ($($name:ident)*) => {
        /// Returns the descriptor of a type, or `None` if the specification has none.
        ///
        /// Inside of a group, the descriptor of the [`Member`](super::Member) has the same content
        /// and more.
        #[must_use]
        pub const fn describe(ie: IeType) -> Option<Descriptor> {
            match ie {
                $(<super::$name as Ie>::TYPE => Some(<super::$name as Ie>::DESCRIPTOR),)*
                _ => None,
            }
        }
    };
}

/// Decodes the value of an element and encodes it again from what its type keeps: a leaf loses
/// spare bits and trailing bytes, a group keeps everything. Returns `None` if the specification has
/// no such type.
///
/// # Errors
/// Returns an error if the bytes are not a valid value.
#[must_use]
pub fn canonical(ie: IeType, value: &[u8]) -> Option<Result<Vec<u8>, Error>> {
    let mut out = Vec::with_capacity(value.len());
    let written = match describe(ie)? {
        Descriptor::Leaf(leaf) => {
            Index::leaf(value, leaf).map(|_| (leaf.reencode)(value, &mut out))
        }
        Descriptor::Group(group) => reencode_group(group, value, &mut out),
    };
    Some(
        written
            .map(|()| out)
            .map_err(|error| error.within(ie, None)),
    )
}

fn reencode_group(group: &'static Group, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let (mut index, mut writer) = (Index::new(), Writer::new(out));
    (group.reencode)(index.walk(value, 0, group)?, &mut writer)?;
    writer.finish_in(Some(group))
}

described! {
    PfdContents CreatePdr Pdi CreateFar ForwardingParameters DuplicatingParameters CreateUrr
    CreateQer CreatedPdr UpdatePdr UpdateFar UpdateForwardingParameters UpdateBarReportResponse
    UpdateUrr UpdateQer RemovePdr RemoveFar RemoveUrr RemoveQer Cause SourceInterface FTeid
    NetworkInstance SdfFilter ApplicationId GateStatus Mbr Gbr QerCorrelationId Precedence
    TransportLevelMarking VolumeThreshold TimeThreshold MonitoringTime SubsequentVolumeThreshold
    SubsequentTimeThreshold InactivityDetectionTime ReportingTriggers RedirectInformation
    ReportType OffendingIe ForwardingPolicy DestinationInterface UpFunctionFeatures ApplyAction
    DownlinkDataServiceInformation DownlinkDataNotificationDelay DlBufferingDuration
    PfcpsmreqFlags PfcpsrrspFlags LoadControlInformation SequenceNumber Metric
    OverloadControlInformation Timer PdrId FSeid ApplicationIdsPfds PfdContext NodeId
    MeasurementMethod UsageReportTrigger MeasurementPeriod FqCsid VolumeMeasurement
    DurationMeasurement ApplicationDetectionInformation TimeOfFirstPacket TimeOfLastPacket
    QuotaHoldingTime DroppedDlTrafficThreshold VolumeQuota TimeQuota StartTime EndTime QueryUrr
    UsageReportModificationResponse UsageReportDeletionResponse UsageReportRequest UrrId
    LinkedUrrId DownlinkDataReport OuterHeaderCreation CreateBar UpdateBar RemoveBar BarId
    CpFunctionFeatures UsageInformation ApplicationInstanceId FlowInformation UeIpAddress
    PacketRate OuterHeaderRemoval RecoveryTimeStamp DlFlowLevelMarking HeaderEnrichment
    ErrorIndicationReport MeasurementInformation NodeReportType UserPlanePathFailureReport
    RemoteGtpuPeer UrSeqn UpdateDuplicatingParameters ActivatePredefinedRules
    DeactivatePredefinedRules FarId QerId OciFlags PfcpAssociationReleaseRequest
    GracefulReleasePeriod PdnType FailedRuleId TimeQuotaMechanism UserPlaneIpResourceInformation
    UserPlaneInactivityTimer AggregatedUrrs Multiplier AggregatedUrrId SubsequentVolumeQuota
    SubsequentTimeQuota Rqi Qfi QueryUrrReference AdditionalUsageReportsInformation
    CreateTrafficEndpoint CreatedTrafficEndpoint UpdateTrafficEndpoint RemoveTrafficEndpoint
    TrafficEndpointId EthernetPacketFilter MacAddress CTag STag Ethertype Proxying
    EthernetFilterId EthernetFilterProperties SuggestedBufferingPacketsCount UserId
    EthernetPduSessionInformation EthernetTrafficInformation EthernetInactivityTimer
    AdditionalMonitoringTime EventQuota EventThreshold SubsequentEventQuota
    SubsequentEventThreshold FramedRoute FramedRouting FramedIpv6Route TimeStamp AveragingWindow
    PagingPolicyIndicator ApnDnn TgppInterfaceType PfcpsrreqFlags PfcpaureqFlags ActivationTime
    DeactivationTime CreateMar TgppAccessForwardingActionInformation
    Non3gppAccessForwardingActionInformation RemoveMar UpdateMar
    Update3gppAccessForwardingActionInformation UpdateNon3gppAccessForwardingActionInformation
    UeIpAddressPoolIdentity PfcpSessionRetentionInformation PfcpasrspFlags CpPfcpEntityIpAddress
    PfcpsereqFlags UserPlanePathRecoveryReport IpMulticastAddressingInfo
    JoinIpMulticastInformation LeaveIpMulticastInformation SourceIpAddress
    CreatedBridgeRouterInfo RemoveSrr CreateSrr UpdateSrr UeIpAddressPoolInformation UpdatedPdr
    SNssai PfcpasreqFlags DataStatus UeIpAddressUsageInformation PartialFailureInformation MarId
    Weight SteeringFunctionality SteeringMode Priority RatType TransportMode
    RequestedAccessAvailabilityInformation MptcpControlInformation AtsssLlControlInformation
    AtsssLlInformation MultipathApplicableIndication SteeringModeIndicator
    MpquicControlInformation AccessAvailabilityInformation PmfControlInformation
    MptcpAddressInformation MpquicAddressInformation LinkSpecificMultipathIpAddress
    PmfAddressInformation Thresholds PortNumber NwTtPortNumber TimeDomainNumber
    TimeOffsetThreshold CumulativeRateratioThreshold TimeOffsetMeasurement
    CumulativeRateratioMeasurement CreateBridgeRouterInfo RequestedClockDriftInformation
    ConfiguredTimeDomain PortManagementInformationContainer
    UserPlaneNodeManagementInformationContainer TlContainer FiveGsUserPlaneNodeId
    QuotaValidityTime NumberOfReports SrrId DlDataPacketsSize
    PacketReplicationAndDetectionCarryOnInformation MtEdtControlInformation
    MtSdtControlInformation RdsConfigurationInformation PfcpsdrspFlags
    ExtendedDlBufferingNotificationPolicy PacketInspectionFunctionality SmfChangeReason
    DlBufferingSuggestedPacketCount PredefinedRulesName OperatorConfigurableUpfCapability
    MacAddressesDetected MacAddressesRemoved TraceInformation OffendingIeInformation
    DscpToPpiMappingInformation VendorSpecificNodeReportType RtpHeaderExtensionId RtpPayloadType
    ReportingEndpointId HeaderHandlingControlId HeaderHandlingControlRuleId
    MediaTransportProtocol RtpHeaderExtensionType RtpPayloadFormat HeaderHandlingAction
    HeaderHandlingCondition MediaRelatedInformationTransferInfo
    HeaderHandlingReportingIndication MoqControlInformation ExpeditedTransferIndication
    EventNotificationUri NotificationCorrelationId Metadata HeaderDetectionReference
    HeaderDetectionSupportInformation HeaderHandlingControlReference HeaderInformation
    HeaderValue BindingIndication RtpHeaderExtensionAdditionalInformation MoqRelayIpAddress
    DnsQueryResponseFilter MbsUnicastParametersId AreaSessionId Mbsn4mbreqFlags Mbsn4respFlags
    IpMulticastAddress MbsSessionIdentifier MulticastTransportInformation LocalIngressTunnel
    ValidityTimer IpVersion DataNetworkAccessIdentifier GroupId Uri AlternativeSmfIpAddress
    SmfSetId NfInstanceId NumberOfUeIpAddresses CpIpAddress IpAddressAndPortNumberReplacement
    MappedN6IpAddress N6RoutingInformation OnPathN6ConnectionInformation HplmnSNssai
    AveragePacketDelay MinimumPacketDelay MaximumPacketDelay MinimumWaitTime
    N6DelayMeasurementControlInformationId MeasurementEndpointPortNumber SecurityModeOwampTwamp
    QosReportTrigger GtpuPathInterfaceType RequestedQosMonitoring ReportingFrequency
    QerControlIndications ReportingFlags QerIndications TrafficParameterMeasurementIndication
    MeasurementIndication N6DelayMeasurementProtocols MeasurementReportingType PduSetImportance
    ReportingControlInformation SecurityModeStamp SessionReflectorModeStamp
    TransportLevelMarkingIndications N6DelayMeasurementFailureInformation
    RemainingDataReportingIndication HmacKeyStamp PacketRateStatus PacketDelayThresholds
    QosMonitoringMeasurement TrafficParameterThreshold DlPeriodicity UlPeriodicity
    N6JitterMeasurement ReportingSuggestionInfo ReportingThresholds
    UeLevelMeasurementsConfiguration N6DelayMeasurementInformation MeasurementEndpointAddress
    KeyIdAndSharedSecret TunnelPreference MaximumReceiveUnit L2tpSessionIndications LnsAddress
    CallingNumber CalledNumber TunnelPassword L2tpUserAuthentication DnsServerAddress
    NbnsServerAddress AccessAvailabilityControlInformation AccessAvailabilityReport
    ProvideAtsssControlInformation AtsssControlParameters MptcpParameters AtsssLlParameters
    PmfParameters MpquicParameters TscManagementInformationModificationRequest
    TscManagementInformationModificationResponse TscManagementInformationReportRequest
    EthernetContextInformation ProtocolDescription RtpHeaderExtensionInformation
    RtpPayloadInformation HeaderHandlingControlRule HeaderHandlingReportingControlInfo
    HeaderHandlingControlInformation ExtendedTransportLevelMarking MoqInformation
    MbsSessionN4mbControlInformation MbsSessionN4ControlInformation MbsMulticastParameters
    AddMbsUnicastParameters MbsSessionN4mbInformation RemoveMbsUnicastParameters
    MbsSessionN4Information PfdPartialFailureInformation ClockDriftControlInformation
    GtpuPathQosControlInformation N6DelayMeasurementControlInformation
    ProtocolSpecificConfigurationParameters ClockDriftReport GtpuPathQosReport QosInformation
    PeerUpRestartReport N6DelayMeasurementReport PfcpSessionChangeInfo
    QosMonitoringPerQosFlowControlInformation QosMonitoringReport
    TrafficParameterMeasurementControlInformation TrafficParameterMeasurementReport
    DirectReportingInformation SessionReport RedundantN3N9TransmissionInformation
    LocalN3N9TunnelInformation RemoteN3N9TunnelInformation PacketRateStatusReport
    QueryPacketRateStatus PacketRateStatusReportModificationResponse
    RedundantTransmissionParameters RedundantTransmissionForwardingParameters
    TransportDelayReporting DscpToPpiControlInformation ProvideRdsConfigurationInformation
    L2tpTunnelInformation L2tpSessionInformation CreatedL2tpSession
}
