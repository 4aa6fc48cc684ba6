use super::MessageType;
use crate::error::Error;
use crate::ie::element::{GROUP_WITHOUT_TABLE, Owned};
use crate::ie::{Group, GroupRemainder};
use crate::wire::{Part, Writer};

/// Defines [`Body`] and [`BodyView`] with a variant for each message.
macro_rules! bodies {
    ($($name:ident $view:ident $constant:ident;)*) => {
        /// The information elements of a message.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Body {
            $(
                #[doc = concat!(
                    "Holds [`", stringify!($name), "`](super::", stringify!($name), ")."
                )]
                $name(Box<super::$name>),
            )*
            /// Holds the elements of a message that has no table.
            Other(MessageType, GroupRemainder),
        }

        /// The borrowed information elements of a message.
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub enum BodyView<'a> {
            $(
                #[doc = concat!(
                    "Borrows [`", stringify!($name), "`](super::", stringify!($name), ")."
                )]
                $name(super::$view<'a>),
            )*
            /// Borrows the elements of a message that has no table.
            Other(Part<'a>),
        }

        impl Body {
            /// Returns the type of the message.
            #[must_use]
            pub const fn message_type(&self) -> MessageType {
                match self {
                    $(Self::$name(_) => MessageType::$constant,)*
                    Self::Other(message_type, _) => *message_type,
                }
            }

            pub(crate) fn from_parts(
                message_type: MessageType,
                part: Part<'_>,
            ) -> Result<Self, Error> {
                match message_type {
                    $(MessageType::$constant => {
                        let mut body = Box::new(super::$name::blank());
                        let (tree, node) = part.tree_and_node();
                        body.fill(&tree, node).map(|()| Self::$name(body))
                    })*
                    _ => Ok(Self::Other(message_type, GroupRemainder::of(part))),
                }
            }

            pub(crate) fn write(&self, out: &mut Writer<'_>) {
                match self {
                    $(Self::$name(body) => body.write_members(out),)*
                    Self::Other(_, rest) => rest.arrange(out, out.out.len(), &GROUP_WITHOUT_TABLE),
                }
            }
        }

        impl<'a> BodyView<'a> {
            #[inline]
            pub(crate) const fn new(message_type: MessageType, part: Part<'a>) -> Self {
                match message_type {
                    $(MessageType::$constant => Self::$name(super::$view(part)),)*
                    _ => Self::Other(part),
                }
            }
        }

        $(
            impl From<super::$name> for Body {
                fn from(body: super::$name) -> Self {
                    Self::$name(Box::new(body))
                }
            }
        )*

        /// Returns the table of a message.
        #[inline]
        pub(crate) fn table(message_type: MessageType) -> &'static Group {
            match message_type {
                $(MessageType::$constant => super::$name::GROUP,)*
                _ => &GROUP_WITHOUT_TABLE,
            }
        }
    };
}

bodies! {
    HeartbeatRequest HeartbeatRequestView HEARTBEAT_REQUEST;
    HeartbeatResponse HeartbeatResponseView HEARTBEAT_RESPONSE;
    PfdManagementRequest PfdManagementRequestView PFD_MANAGEMENT_REQUEST;
    PfdManagementResponse PfdManagementResponseView PFD_MANAGEMENT_RESPONSE;
    AssociationSetupRequest AssociationSetupRequestView ASSOCIATION_SETUP_REQUEST;
    AssociationSetupResponse AssociationSetupResponseView ASSOCIATION_SETUP_RESPONSE;
    AssociationUpdateRequest AssociationUpdateRequestView ASSOCIATION_UPDATE_REQUEST;
    AssociationUpdateResponse AssociationUpdateResponseView ASSOCIATION_UPDATE_RESPONSE;
    AssociationReleaseRequest AssociationReleaseRequestView ASSOCIATION_RELEASE_REQUEST;
    AssociationReleaseResponse AssociationReleaseResponseView ASSOCIATION_RELEASE_RESPONSE;
    VersionNotSupportedResponse VersionNotSupportedResponseView VERSION_NOT_SUPPORTED_RESPONSE;
    NodeReportRequest NodeReportRequestView NODE_REPORT_REQUEST;
    NodeReportResponse NodeReportResponseView NODE_REPORT_RESPONSE;
    SessionSetDeletionRequest SessionSetDeletionRequestView SESSION_SET_DELETION_REQUEST;
    SessionSetDeletionResponse SessionSetDeletionResponseView SESSION_SET_DELETION_RESPONSE;
    SessionSetModificationRequest SessionSetModificationRequestView
        SESSION_SET_MODIFICATION_REQUEST;
    SessionSetModificationResponse SessionSetModificationResponseView
        SESSION_SET_MODIFICATION_RESPONSE;
    SessionEstablishmentRequest SessionEstablishmentRequestView SESSION_ESTABLISHMENT_REQUEST;
    SessionEstablishmentResponse SessionEstablishmentResponseView SESSION_ESTABLISHMENT_RESPONSE;
    SessionModificationRequest SessionModificationRequestView SESSION_MODIFICATION_REQUEST;
    SessionModificationResponse SessionModificationResponseView SESSION_MODIFICATION_RESPONSE;
    SessionDeletionRequest SessionDeletionRequestView SESSION_DELETION_REQUEST;
    SessionDeletionResponse SessionDeletionResponseView SESSION_DELETION_RESPONSE;
    SessionReportRequest SessionReportRequestView SESSION_REPORT_REQUEST;
    SessionReportResponse SessionReportResponseView SESSION_REPORT_RESPONSE;
}
