use std::fmt;

use crate::ie::{Group, Interfaces, Release};

/// Defines [`MessageType`] with a constant and a name for each row.
macro_rules! message_types {
    ($($number:literal $constant:ident $name:literal;)*) => {
        /// The type of a message. Unknown numbers are kept.
        ///
        /// ```
        /// use strowger_pfcp::MessageType;
        ///
        /// assert_eq!(MessageType::SESSION_REPORT_REQUEST.0, 56);
        /// assert_eq!(MessageType(50).to_string(), "Session Establishment Request");
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct MessageType(pub u8);

        impl MessageType {
            $(
                #[doc = concat!($name, ".")]
                pub const $constant: Self = Self($number);
            )*

            /// All types that TS 29.244 names, ordered by number.
            pub const ALL: &'static [Self] = &[$(Self($number)),*];

            /// Returns the name that TS 29.244 gives the type, without "PFCP".
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

// TS 29.244 Table 7.3-1.
message_types! {
    1 HEARTBEAT_REQUEST "Heartbeat Request";
    2 HEARTBEAT_RESPONSE "Heartbeat Response";
    3 PFD_MANAGEMENT_REQUEST "PFD Management Request";
    4 PFD_MANAGEMENT_RESPONSE "PFD Management Response";
    5 ASSOCIATION_SETUP_REQUEST "Association Setup Request";
    6 ASSOCIATION_SETUP_RESPONSE "Association Setup Response";
    7 ASSOCIATION_UPDATE_REQUEST "Association Update Request";
    8 ASSOCIATION_UPDATE_RESPONSE "Association Update Response";
    9 ASSOCIATION_RELEASE_REQUEST "Association Release Request";
    10 ASSOCIATION_RELEASE_RESPONSE "Association Release Response";
    11 VERSION_NOT_SUPPORTED_RESPONSE "Version Not Supported Response";
    12 NODE_REPORT_REQUEST "Node Report Request";
    13 NODE_REPORT_RESPONSE "Node Report Response";
    14 SESSION_SET_DELETION_REQUEST "Session Set Deletion Request";
    15 SESSION_SET_DELETION_RESPONSE "Session Set Deletion Response";
    16 SESSION_SET_MODIFICATION_REQUEST "Session Set Modification Request";
    17 SESSION_SET_MODIFICATION_RESPONSE "Session Set Modification Response";
    50 SESSION_ESTABLISHMENT_REQUEST "Session Establishment Request";
    51 SESSION_ESTABLISHMENT_RESPONSE "Session Establishment Response";
    52 SESSION_MODIFICATION_REQUEST "Session Modification Request";
    53 SESSION_MODIFICATION_RESPONSE "Session Modification Response";
    54 SESSION_DELETION_REQUEST "Session Deletion Request";
    55 SESSION_DELETION_RESPONSE "Session Deletion Response";
    56 SESSION_REPORT_REQUEST "Session Report Request";
    57 SESSION_REPORT_RESPONSE "Session Report Response";
}

impl MessageType {
    /// Returns `true` if the message is session-related, so that its header carries a SEID.
    #[must_use]
    pub const fn is_session(self) -> bool {
        matches!(self.0, 50..=99)
    }

    /// Returns `true` if the message is a request. Unknown types are not.
    #[must_use]
    pub const fn is_request(self) -> bool {
        matches!(self.0, 1 | 3 | 5 | 7 | 9 | 12 | 14 | 16 | 50 | 52 | 54 | 56)
    }

    /// Returns `true` if the message is a response. Unknown types are not.
    #[must_use]
    pub const fn is_response(self) -> bool {
        self.name().is_some() && !self.is_request()
    }

    /// Returns the table of the message, or `None` if the specification has none.
    #[must_use]
    pub fn table(self) -> Option<&'static Group> {
        Some(super::table(self)).filter(|table| !table.table.is_empty())
    }

    /// Returns the interfaces that the message is used on: those on which the message must have an
    /// element or, if it may be empty, those on which its response must have one. A message for
    /// which neither is required belongs to every interface.
    ///
    /// ```
    /// use strowger_pfcp::{Interfaces, MessageType};
    ///
    /// let with_descriptions = Interfaces::SXB.with(Interfaces::SXC).with(Interfaces::N4);
    /// assert_eq!(MessageType::PFD_MANAGEMENT_REQUEST.interfaces(), with_descriptions);
    /// assert_eq!(MessageType::SESSION_DELETION_REQUEST.interfaces(), Interfaces::ALL);
    /// ```
    #[must_use]
    #[inline]
    pub fn interfaces(self) -> Interfaces {
        self.interfaces_in(Release::R19)
    }

    /// Returns the interfaces that the message is used on in a release.
    #[inline]
    pub(crate) fn interfaces_in(self, release: Release) -> Interfaces {
        self.interfaces_of(super::table(self), release)
    }

    /// Returns the interfaces that a message with this table is used on in a release.
    #[inline]
    pub(crate) fn interfaces_of(self, table: &Group, release: Release) -> Interfaces {
        let own = table.used_in(release);
        if own.is_empty() {
            self.answered_on(release)
        } else {
            own
        }
    }

    /// Returns the interfaces that the response is used on, for a message that may be empty.
    fn answered_on(self, release: Release) -> Interfaces {
        let of = |message| super::table(message).used_in(release);
        let answered = self.response().map_or(Interfaces::NONE, of);
        if answered.is_empty() {
            Interfaces::ALL
        } else {
            answered
        }
    }

    /// Returns the type of the response to this request.
    #[must_use]
    pub const fn response(self) -> Option<Self> {
        if self.is_request() {
            Some(Self(self.0 + 1))
        } else {
            None
        }
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "message {}", self.0),
        }
    }
}

impl fmt::Debug for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageType({}", self.0)?;
        match self.name() {
            Some(name) => write!(f, " {name})"),
            None => f.write_str(")"),
        }
    }
}
