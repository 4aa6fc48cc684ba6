use super::leaf::codes;

codes! {
    /// The acceptance of a request, or the reason for its rejection, TS 29.244 §8.2.1.
    Cause: u8 = CAUSE cause {
        0 RESERVED "Reserved";
        1 REQUEST_ACCEPTED "Request accepted (success)";
        2 MORE_USAGE_REPORTS "More Usage Report to send";
        3 REQUEST_PARTIALLY_ACCEPTED "Request partially accepted";
        64 REQUEST_REJECTED "Request rejected (reason not specified)";
        65 SESSION_CONTEXT_NOT_FOUND "Session context not found";
        66 MANDATORY_IE_MISSING "Mandatory IE missing";
        67 CONDITIONAL_IE_MISSING "Conditional IE missing";
        68 INVALID_LENGTH "Invalid length";
        69 MANDATORY_IE_INCORRECT "Mandatory IE incorrect";
        70 INVALID_FORWARDING_POLICY "Invalid Forwarding Policy";
        71 INVALID_F_TEID_ALLOCATION "Invalid F-TEID allocation option";
        72 NO_ESTABLISHED_ASSOCIATION "No established PFCP Association";
        73 RULE_FAILURE "Rule creation/modification Failure";
        74 CONGESTION "PFCP entity in congestion";
        75 NO_RESOURCES_AVAILABLE "No resources available";
        76 SERVICE_NOT_SUPPORTED "Service not supported";
        77 SYSTEM_FAILURE "System failure";
        78 REDIRECTION_REQUESTED "Redirection Requested";
        79 ALL_DYNAMIC_ADDRESSES_OCCUPIED "All dynamic addresses are occupied";
        80 UNKNOWN_PREDEFINED_RULE "Unknown Pre-defined Rule";
        81 UNKNOWN_APPLICATION_ID "Unknown Application ID";
        82 L2TP_TUNNEL_FAILURE "L2TP tunnel Establishment failure";
        83 L2TP_SESSION_FAILURE "L2TP session Establishment failure";
        84 L2TP_TUNNEL_RELEASE "L2TP tunnel release";
        85 L2TP_SESSION_RELEASE "L2TP session release";
        86 SESSION_RESTORATION_FAILURE
            "PFCP session restoration failure due to requested resource not available";
        87 L2TP_TUNNEL_AUTH_FAILURE "L2TP tunnel Establishment failure - Tunnel Auth Failure" R19;
        88 L2TP_SESSION_AUTH_FAILURE
            "L2TP Session Establishment failure - Session Auth Failure" R19;
        89 L2TP_LNS_NOT_REACHABLE "L2TP tunnel Establishment failure - LNS not reachable" R19;
        90 PFD_CONTENTS_SYNTAX_ERROR "PFD Contents Syntax Error" R19;
        91 PFD_CONTENTS_SEMANTICS_ERROR "PFD Contents Semantics Error" R19;
        92 PFD_APPLICATION_ID_UNKNOWN "PFD Application Id Unknown" R19;
    }
}

impl Cause {
    /// Returns `true` if the request was accepted, in whole or in part.
    #[must_use]
    pub const fn is_acceptance(self) -> bool {
        self.0 < 64 && self.0 != 0
    }

    /// Returns `true` if the request was rejected.
    #[must_use]
    pub const fn is_rejection(self) -> bool {
        self.0 >= 64
    }
}
