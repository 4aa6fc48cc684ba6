//! Media, and inspection of headers: TS 29.244 §8.2.202, §8.2.203, §8.2.233 to §8.2.241, §8.2.251
//! to §8.2.260 and others.

use super::leaf::{codes, flags, numbers, record, strings};

numbers! {
    /// The identifier of an RTP header extension, TS 29.244 §8.2.235.
    RtpHeaderExtensionId: u8 = RTP_HEADER_EXTENSION_ID rtp_header_extension_id;
    /// The type of an RTP payload, TS 29.244 §8.2.236.
    RtpPayloadType: u8 = RTP_PAYLOAD_TYPE payload_type;
    /// The identifier of an endpoint that receives reports, TS 29.244 §8.2.253.
    ReportingEndpointId: u8 = REPORTING_ENDPOINT_ID reporting_endpoint_id;
    /// The identifier of a header handling control, TS 29.244 §8.2.259.
    HeaderHandlingControlId: u8 = HEADER_HANDLING_CONTROL_ID header_handling_control_id;
    /// The identifier of a header handling control rule, TS 29.244 §8.2.260.
    HeaderHandlingControlRuleId: u8
        = HEADER_HANDLING_CONTROL_RULE_ID header_handling_control_rule_id;
}

codes! {
    /// The transport protocol of media, TS 29.244 §8.2.233.
    MediaTransportProtocol: low4 = MEDIA_TRANSPORT_PROTOCOL media_transport_protocol {
        0 UNSPECIFIED "Unspecified";
        1 RTP "RTP";
        2 SRTP "SRTP";
        3 MOQT "MOQT";
    }
    /// The type of an RTP header extension, TS 29.244 §8.2.234.
    RtpHeaderExtensionType: u8 = RTP_HEADER_EXTENSION_TYPE rtp_header_extension_type {
        1 PDU_SET_MARKING "RTP Header Extension for PDU Set Marking";
        2 DYNAMIC_TRAFFIC "RTP header extension for dynamically changing traffic characteristics";
        3 EXPEDITED_TRANSFER "RTP header extension for Expedited Transfer Indication";
    }
    /// The format of an RTP payload, TS 29.244 §8.2.237.
    RtpPayloadFormat: u8 = RTP_PAYLOAD_FORMAT payload_format {
        1 H264 "H.264";
        2 H265 "H.265";
    }
    /// The action for a header, TS 29.244 §8.2.255.
    HeaderHandlingAction: low4 = HEADER_HANDLING_ACTION action {
        0 DETECT "DETECT";
        1 REMOVE "REMOVE";
        2 REPLACE "REPLACE";
        3 INSERT "INSERT";
    }
    /// The condition for the action on a header, TS 29.244 §8.2.258.
    HeaderHandlingCondition: low4 = HEADER_HANDLING_CONDITION condition {
        0 EVERY_MATCH "EVERY_MATCH";
        1 FIRST_MATCH_ONLY "FIRST_MATCH_ONLY";
    }
    /// The transfer method of media-related information, TS 29.244 §8.2.271.
    MediaRelatedInformationTransferInfo: low4
        = MEDIA_RELATED_INFORMATION_TRANSFER_INFO transferring_method {
        0 UNSPECIFIED "Unspecified";
        1 UDP_OPTION "UDP Option (of outer UDP datagram)";
    }
}

flags! {
    /// Flags of the reports about headers, TS 29.244 §8.2.266.
    HeaderHandlingReportingIndication: u8, 1..1 = HEADER_HANDLING_REPORTING_INDICATION {
        OTRI 5/1;
    }
    /// Flags that request a relay for media over QUIC (MoQ), TS 29.244 §8.2.269.
    MoqControlInformation: u8, 1..1 = MOQ_CONTROL_INFORMATION {
        MQREI 5/1;
        MQRAI 5/2;
    }
    /// Flags for the expedited transfer of packets, TS 29.244 §8.2.278.
    ExpeditedTransferIndication: u8, 1..1 = EXPEDITED_TRANSFER_INDICATION {
        TRUE 5/1;
        FALSE 5/2;
    }
}

strings! {
    /// The URI to which reports are sent, TS 29.244 §8.2.202.
    EventNotificationUri: text = EVENT_NOTIFICATION_URI event_notification_uri;
    /// The identifier that relates a report to its subscription, TS 29.244 §8.2.203.
    NotificationCorrelationId: text = NOTIFICATION_CORRELATION_ID notification_correlation_id;
    /// The metadata for a service function, sent along with packets, TS 29.244 §8.2.219.
    Metadata: bytes = METADATA metadata;
    /// The name of a method of header detection, TS 29.244 §8.2.251.
    HeaderDetectionReference: text = HEADER_DETECTION_REFERENCE header_detection_reference;
    /// Supporting information for header detection, TS 29.244 §8.2.252.
    HeaderDetectionSupportInformation: text
        = HEADER_DETECTION_SUPPORT_INFORMATION header_detection_support_information;
    /// The name of a method of header handling, TS 29.244 §8.2.254.
    HeaderHandlingControlReference: text
        = HEADER_HANDLING_CONTROL_REFERENCE header_handling_control_reference;
    /// The header to handle, TS 29.244 §8.2.256.
    HeaderInformation: text = HEADER_INFORMATION header_information;
    /// The value of a header, TS 29.244 §8.2.257.
    HeaderValue: text = HEADER_VALUE header_value;
    /// The binding indication: the instances that may receive a report, TS 29.244 §8.2.281.
    BindingIndication: text = BINDING_INDICATION binding_indication;
}

super::open::open_enum! {
    /// The format of RTP header extensions, TS 29.244 §8.2.241.
    RtpHeaderExtensionFormat(u8)
    1 SHORT "1-byte (short) format is used";
    2 LONG "2-byte (long) format is used";
}

record! {
    /// Additional information about an RTP header extension, TS 29.244 §8.2.241.
    RtpHeaderExtensionAdditionalInformation
        = RTP_HEADER_EXTENSION_ADDITIONAL_INFORMATION, head 2 {
        /// The format is valid.
        fi: flag 5/1;
        /// The flag about the PDU set size is valid.
        pssai: flag 5/2;
        /// The flag about the number of PDUs is valid.
        npdsi: flag 5/3;
        /// Format of the RTP header extension.
        format: (RtpHeaderExtensionFormat 2) 6/1;
        /// The size of a PDU set is included.
        pssa: flag 6/3;
        /// The number of PDUs of a set is included.
        npds: flag 6/4;
    } {}
}

record! {
    /// The address of the relay for media over QUIC (MoQ), TS 29.244 §8.2.270.
    MoqRelayIpAddress = MOQ_RELAY_IP_ADDRESS, head 1 {} {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/1];
    }
}

record! {
    /// A filter for DNS queries and responses, TS 29.244 §8.2.201.
    DnsQueryResponseFilter T = DNS_QUERY_RESPONSE_FILTER, head 0 {} {
        /// The pattern of the domain name.
        domain_name_pattern: text16;
    }
}
