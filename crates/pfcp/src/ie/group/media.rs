//! Media, and rules about headers.

use super::group;

group! {
    /// The protocols that transport media.
    ProtocolDescription ProtocolDescriptionView = PROTOCOL_DESCRIPTION "7.5.2.2-7" {
        transport_protocol: MediaTransportProtocol, O opt [N4] "Transport Protocol";
        rtp_header_extension_informations: RtpHeaderExtensionInformation, C many [N4];
        rtp_payload_informations: RtpPayloadInformation, O many [N4];
        media_related_information_transfer_info: MediaRelatedInformationTransferInfo, O opt [N4];
    }
}

group! {
    /// An RTP header extension.
    RtpHeaderExtensionInformation RtpHeaderExtensionInformationView
        = RTP_HEADER_EXTENSION_INFORMATION "7.5.2.2-8" {
        rtp_header_extension_type: RtpHeaderExtensionType, C opt [N4];
        rtp_header_extension_id: RtpHeaderExtensionId, C opt [N4];
        rtp_header_extension_additional_information: RtpHeaderExtensionAdditionalInformation,
            O opt [N4];
    }
}

group! {
    /// An RTP payload.
    RtpPayloadInformation RtpPayloadInformationView = RTP_PAYLOAD_INFORMATION "7.5.2.2-9" {
        rtp_payload_types: RtpPayloadType, C many [N4];
        rtp_payload_format: RtpPayloadFormat, O opt [N4];
    }
}

group! {
    /// A header handling control rule.
    HeaderHandlingControlRule HeaderHandlingControlRuleView
        = HEADER_HANDLING_CONTROL_RULE "7.5.2.3-7" {
        header_handling_control_rule_id: HeaderHandlingControlRuleId, M one [N4];
        header_detection_reference: HeaderDetectionReference, M one [N4];
        header_detection_support_information: HeaderDetectionSupportInformation, O opt [N4];
        header_handling_reporting_control_infos: HeaderHandlingReportingControlInfo, O many [N4];
        header_handling_control_informations: HeaderHandlingControlInformation, M many [N4];
    }
}

group! {
    /// The control of reports about headers.
    HeaderHandlingReportingControlInfo HeaderHandlingReportingControlInfoView
        = HEADER_HANDLING_REPORTING_CONTROL_INFO "7.5.2.3-8" {
        reporting_endpoint_id: ReportingEndpointId, M one [N4];
        minimum_wait_time: MinimumWaitTime, C opt [N4; R17];
        reporting_suggestion_info: ReportingSuggestionInfo, O opt [N4];
        event_notification_uri: EventNotificationUri, M one [N4; R17];
        notification_binding_indication: BindingIndication,
            C opt [N4] "Notification Binding Indication";
        notification_correlation_id: NotificationCorrelationId, M one [N4; R17];
        header_handling_reporting_indication: HeaderHandlingReportingIndication, C opt [N4];
    }
}

group! {
    /// The handling of a header.
    HeaderHandlingControlInformation HeaderHandlingControlInformationView
        = HEADER_HANDLING_CONTROL_INFORMATION "7.5.2.3-9" {
        header_handling_control_id: HeaderHandlingControlId, M one [N4];
        header_handling_control_reference: HeaderHandlingControlReference, C opt [N4];
        header_handling_action: HeaderHandlingAction, C opt [N4];
        header_information: HeaderInformation, C opt [N4];
        header_value: HeaderValue, C opt [N4];
        header_handling_condition: HeaderHandlingCondition, C opt [N4];
        header_handling_reportings: ReportingEndpointId, C many [N4] "Header Handling Reporting";
    }
}

group! {
    /// The transport level marking of important PDU sets.
    ExtendedTransportLevelMarking ExtendedTransportLevelMarkingView
        = EXTENDED_TRANSPORT_LEVEL_MARKING "7.5.2.3-10" {
        transport_level_marking: TransportLevelMarking, M one [N4; R17];
        associated_pdu_set_importance_values: PduSetImportance,
            M one [N4] "Associated PDU Set Importance values";
    }
}

group! {
    /// The relay for media over QUIC (MoQ).
    MoqInformation MoqInformationView = MOQ_INFORMATION "7.5.3.1-6" {
        moq_relay_address: MoqRelayIpAddress, C opt [N4] "MoQ Relay Address";
    }
}
