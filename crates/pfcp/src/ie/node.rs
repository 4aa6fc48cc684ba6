//! Node-related elements: features, causes, times and load.

use super::IeType;
use super::leaf::{codes, flags, numbers, record, strings};

numbers! {
    /// The time at which a node started, in seconds since 1900, TS 29.244 §8.2.65.
    RecoveryTimeStamp: time = RECOVERY_TIME_STAMP recovery_time_stamp;
    /// The sequence number of load or overload information, TS 29.244 §8.2.33.
    SequenceNumber: u32 = SEQUENCE_NUMBER sequence_number;
    /// The load, or the requested reduction of load, in percent, TS 29.244 §8.2.34.
    Metric: u8 = METRIC metric;
    /// The type of the information element at fault, TS 29.244 §8.2.22.
    OffendingIe: u16 = OFFENDING_IE type_of_the_offending_ie;
}

impl OffendingIe {
    /// Returns the type of the element.
    #[must_use]
    pub const fn ie(self) -> IeType {
        IeType(self.0)
    }
}

impl From<IeType> for OffendingIe {
    fn from(ie: IeType) -> Self {
        Self(ie.0)
    }
}

flags! {
    /// The features of a UP function, TS 29.244 §8.2.25.
    UpFunctionFeatures: u128, 2..12 = UP_FUNCTION_FEATURES {
        BUCP 5/1;
        DDND 5/2;
        DLBD 5/3;
        TRST 5/4;
        FTUP 5/5;
        PFDM 5/6;
        HEEU 5/7;
        TREU 5/8;
        EMPU 6/1;
        PDIU 6/2;
        UDBC 6/3;
        QUOAC 6/4;
        TRACE 6/5;
        FRRT 6/6;
        PFDE 6/7;
        EPFAR 6/8;
        DPDRA 7/1;
        ADPDP 7/2;
        UEIP 7/3;
        SSET 7/4;
        MNOP 7/5;
        MTE 7/6;
        BUNDL 7/7;
        GCOM 7/8;
        MPAS 8/1;
        RTTL 8/2;
        VTIME 8/3;
        NORP 8/4;
        IPTV 8/5;
        IP6PL 8/6;
        TSN 8/7;
        MPTCP 8/8;
        ATSSS_LL 9/1;
        QFQM 9/2;
        GPQM 9/3;
        MT_EDT 9/4;
        CIOT 9/5;
        ETHAR 9/6;
        DDDS 9/7;
        RDS 9/8;
        RTTWP 10/1;
        QUASF 10/2;
        NSPOC 10/3;
        L2TP 10/4;
        UPBER 10/5;
        RESPS 10/6;
        IPREP 10/7;
        DNSTS 10/8;
        DRQOS 11/1;
        MBSN4 11/2;
        PSUPRM 11/3;
        EPPPI 11/4;
        RATP 11/5;
        UPIDP 11/6;
        AFSFC 11/7 R19;
        MPQUIC_UDP 11/8 R19;
        REDSM 12/1 R19;
        DBDM 12/2 R19;
        TSCTS 12/3 R19;
        DRTSC 12/4 R19;
        N6JEDB 12/5 R19;
        QMCON 12/6 R19;
        DETNET 12/7 R19;
        EML4S 12/8 R19;
        PDUSM 13/1 R19;
        CN_TL 13/2 R19;
        QMDRM 13/3 R19;
        EDBNC 13/4 R19;
        MT_SDT 13/5 R19;
        UPSBIES 13/6 R19;
        UMN6IP 13/7 R19;
        UN6TU 13/8 R19;
        MBSCH 14/1 R19;
        UN6DM 14/2 R19;
        NATPUB 14/3 R19;
        USHPH 14/4 R19;
        MPQUIC_IP 14/5 R19;
        MPQUIC_E 14/6 R19;
        DYNTR 14/7 R19;
        MUXMF 14/8 R19;
        CONUDP 15/1 R19;
        MOQ 15/2 R19;
        ULM 15/3 R19;
        PSITLM 15/4 R19;
        UDPOPT 15/5 R19;
        QMABR 15/6 R19;
        PAPFD 15/7 R19;
    }
    /// The features of a CP function, TS 29.244 §8.2.58.
    CpFunctionFeatures: u32, 1..3 = CP_FUNCTION_FEATURES {
        LOAD 5/1;
        OVRL 5/2;
        EPFAR 5/3;
        SSET 5/4;
        BUNDL 5/5;
        MPAS 5/6;
        ARDR 5/7;
        UIAUR 5/8;
        PSUCC 6/1;
        RPGUR 6/2;
        PAPFD 6/3 R19;
    }
    /// Flags of a Session Modification Request, TS 29.244 §8.2.31.
    PfcpsmreqFlags: u8, 1..1 = PFCPSMREQ_FLAGS {
        DROBU 5/1;
        SNDEM 5/2;
        QAURR 5/3;
        SUMPC 5/4;
        RUMUC 5/5;
        DETEID 5/6;
        HRSBOM 5/7 R19;
    }
    /// Flags of a Session Report Response, TS 29.244 §8.2.32.
    PfcpsrrspFlags: u8, 1..1 = PFCPSRRSP_FLAGS {
        DROBU 5/1;
    }
    /// Flags of a Session Report Request, TS 29.244 §8.2.119.
    PfcpsrreqFlags: u8, 1..1 = PFCPSRREQ_FLAGS {
        PSDBU 5/1;
        PPPCP 5/2 R19;
    }
    /// Flags of an Association Update Request, TS 29.244 §8.2.120.
    PfcpaureqFlags: u8, 1..1 = PFCPAUREQ_FLAGS {
        PARPS 5/1;
    }
    /// Flags of an Association Setup Request, TS 29.244 §8.2.178.
    PfcpasreqFlags: u8, 1..1 = PFCPASREQ_FLAGS {
        UUPSI 5/1;
    }
    /// Flags of an Association Setup Response, TS 29.244 §8.2.134.
    PfcpasrspFlags: u8, 1..1 = PFCPASRSP_FLAGS {
        PSREI 5/1;
        UUPSI 5/2;
    }
    /// Flags of a Session Establishment Request, TS 29.244 §8.2.136.
    PfcpsereqFlags: u8, 1..1 = PFCPSEREQ_FLAGS {
        RESTI 5/1;
        SUMPC 5/2;
        HRSBOM 5/3 R19;
        EPRI 5/4 R19;
    }
    /// Flags that request or announce the release of an association, TS 29.244 §8.2.77.
    PfcpAssociationReleaseRequest: u8, 1..1 = PFCP_ASSOCIATION_RELEASE_REQUEST {
        SARR 5/1;
        URSS 5/2;
    }
    /// The types of a node report, TS 29.244 §8.2.69.
    NodeReportType: u8, 1..1 = NODE_REPORT_TYPE {
        UPFR 5/1;
        UPRR 5/2;
        CKDR 5/3;
        GPQR 5/4;
        PURR 5/5;
        VSR 5/6;
        N6DR 5/7 R19;
    }
    /// The scope of overload information, TS 29.244 §8.2.76.
    OciFlags: u8, 1..1 = OCI_FLAGS {
        AOCI 5/1;
    }
    /// The status of downlink data, TS 29.244 §8.2.179.
    DataStatus: u8, 1..1 = DATA_STATUS {
        DROP 5/1;
        BUFF 5/2;
    }
}

super::open::open_enum! {
    /// The unit of a timer, TS 29.244 §8.2.35.
    TimerUnit(u8)
    0 TWO_SECONDS "multiples of 2 seconds";
    1 MINUTE "multiples of 1 minute";
    2 TEN_MINUTES "multiples of 10 minutes";
    3 HOUR "multiples of 1 hour";
    4 TEN_HOURS "multiples of 10 hours";
    7 INFINITE "infinite";
}

record! {
    /// A period of validity, TS 29.244 §8.2.35.
    Timer = TIMER, head 1 {
        /// Number of units.
        timer_value: 5 5/1;
        /// Unit in which the timer counts.
        timer_unit: (TimerUnit 3) 5/6;
    } {}
}

record! {
    /// The duration of buffering, TS 29.244 §8.2.29.
    DlBufferingDuration = DL_BUFFERING_DURATION, head 1 {
        /// Number of units.
        timer_value: 5 5/1;
        /// Unit in which the timer counts.
        timer_unit: (TimerUnit 3) 5/6;
    } {}
}

record! {
    /// The time limit for a graceful release, TS 29.244 §8.2.78.
    GracefulReleasePeriod = GRACEFUL_RELEASE_PERIOD, head 1 {
        /// Number of units.
        timer_value: 5 5/1;
        /// Unit in which the timer counts.
        timer_unit: (TimerUnit 3) 5/6;
    } {}
}

super::open::open_enum! {
    /// The type of a rule, TS 29.244 §8.2.80.
    RuleType(u8)
    0 PDR "PDR";
    1 FAR "FAR";
    2 QER "QER";
    3 URR "URR";
    4 BAR "BAR";
    5 MAR "MAR";
    6 SRR "SRR";
}

record! {
    /// The identifier of the rule at fault, TS 29.244 §8.2.80.
    FailedRuleId T = FAILED_RULE_ID, head 1 {
        /// The type of the rule.
        rule_id_type: (RuleType 5) 5/1;
    } {
        /// The identifier of a packet detection rule.
        pdr_id: u16 [if (rule_id_type.0 == 0)];
        /// The identifier of a forwarding action, QoS enforcement or usage reporting rule.
        rule_id: u32 [if (matches!(rule_id_type.0, 1..=3))];
        /// The identifier of a buffering action or session reporting rule.
        short_id: u8 [if (matches!(rule_id_type.0, 4 | 6))];
        /// The identifier of a multi-access rule.
        mar_id: u16 [if (rule_id_type.0 == 5)];
        /// The identifier of a rule of another type.
        other: bytes [if (rule_id_type.0 > 6)];
    }
}

impl FailedRuleId {
    const EMPTY: Self = Self {
        rule_id_type: RuleType::PDR,
        pdr_id: None,
        rule_id: None,
        short_id: None,
        mar_id: None,
        other: None,
    };

    /// Creates the identifier of a packet detection rule.
    #[must_use]
    pub const fn pdr(id: super::PdrId) -> Self {
        let mut value = Self::EMPTY;
        value.pdr_id = Some(id.0);
        value
    }

    const fn long(rule_id_type: RuleType, id: u32) -> Self {
        let mut value = Self::EMPTY;
        value.rule_id_type = rule_id_type;
        value.rule_id = Some(id);
        value
    }

    const fn short(rule_id_type: RuleType, id: u8) -> Self {
        let mut value = Self::EMPTY;
        value.rule_id_type = rule_id_type;
        value.short_id = Some(id);
        value
    }

    /// Creates the identifier of a forwarding action rule.
    #[must_use]
    pub const fn far(id: super::FarId) -> Self {
        Self::long(RuleType::FAR, id.0)
    }

    /// Creates the identifier of a QoS enforcement rule.
    #[must_use]
    pub const fn qer(id: super::QerId) -> Self {
        Self::long(RuleType::QER, id.0)
    }

    /// Creates the identifier of a usage reporting rule.
    #[must_use]
    pub const fn urr(id: super::UrrId) -> Self {
        Self::long(RuleType::URR, id.0)
    }

    /// Creates the identifier of a buffering action rule.
    #[must_use]
    pub const fn bar(id: super::BarId) -> Self {
        Self::short(RuleType::BAR, id.0)
    }
}

codes! {
    /// The type of a PDN connection or PDU session, TS 29.244 §8.2.79.
    PdnType: low3 = PDN_TYPE pdn_type {
        1 IPV4 "IPv4";
        2 IPV6 "IPv6";
        3 IPV4V6 "IPv4v6";
        4 NON_IP "Non-IP";
        5 ETHERNET "Ethernet";
    }
}

record! {
    /// A network slice (S-NSSAI), TS 29.244 §8.2.176.
    SNssai = S_NSSAI, head 0 {} {
        /// The slice/service type.
        sst: u8;
        /// The slice differentiator. All bits are set if there is none.
        sd: u24;
    }
}

record! {
    /// A network slice of the home network, TS 29.244 §8.2.232.
    HplmnSNssai = HPLMN_S_NSSAI, head 0 {} {
        /// The slice/service type.
        sst: u8;
        /// The slice differentiator. All bits are set if there is none.
        sd: u24;
    }
}

strings! {
    /// The name of an access point or data network, TS 29.244 §8.2.117.
    ApnDnn: labels = APN_DNN apn_dnn;
}

record! {
    /// The identities of a user, TS 29.244 §8.2.101.
    UserId T = USER_ID, head 1 {} {
        /// The international mobile subscriber identity.
        imsi: digits8 [if IMSIF 5/1];
        /// The international mobile equipment identity.
        imei: digits8 [if IMEIF 5/2];
        /// The subscriber number.
        msisdn: digits8 [if MSISDNF 5/3];
        /// The network access identifier.
        nai: text8 [if NAIF 5/4];
        /// The subscription permanent identifier.
        supi: text8 [if SUPIF 5/5];
        /// The generic public subscription identifier.
        gpsi: text8 [if GPSIF 5/6];
        /// The permanent equipment identifier.
        pei: text8 [if PEIF 5/7];
    }
}

record! {
    /// The identity of a pool of UE IP addresses, TS 29.244 §8.2.128.
    UeIpAddressPoolIdentity T = UE_IP_ADDRESS_POOL_IDENTITY, head 0 {} {
        /// The name of the pool.
        ue_ip_address_pool_identity: text16;
    }
}
