//! The arguments of a connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite;

use crate::access::{Caller, Callers};
use crate::limits::Limits;
use crate::method::Methods;
use crate::unauthenticated::{AdmittedCount, AdmittedSlot, UnauthenticatedSlot};
use crate::web::{self, Origins};

/// A bidirectional byte stream.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// The settings that all connections of an endpoint share.
#[derive(Clone)]
pub(crate) struct EndpointSettings {
    pub(crate) methods: Arc<Methods>,
    pub(crate) limits: Limits,
    /// The way in which clients authenticate.
    pub(crate) admission: Admission,
    /// The authenticated clients of all endpoints together.
    pub(crate) admitted_count: AdmittedCount,
    /// The origins of pages that may connect, if clients use WebSocket.
    pub(crate) origins: Option<Arc<Origins>>,
}

/// The way in which clients of an endpoint authenticate.
#[derive(Debug, Clone)]
pub(crate) enum Admission {
    /// Only the owner can connect, so no token is needed.
    Owner(Caller),
    /// The client must send the token of one of these callers.
    Tokens(Arc<Callers>),
}

impl Admission {
    /// Returns the callers if a token is required.
    pub(crate) const fn tokens(&self) -> Option<&Arc<Callers>> {
        match self {
            Self::Owner(_) => None,
            Self::Tokens(callers) => Some(callers),
        }
    }
}

/// The status of a client when it connects.
#[derive(Debug)]
pub(crate) enum ClientStatus {
    /// The client has to authenticate.
    Unauthenticated(UnauthenticatedSlot),
    /// The client is let in: only the owner can connect.
    Admitted(AdmittedSlot),
}

/// A stream and the status of its client.
type NewClient = (Box<dyn ByteStream>, ClientStatus);

/// The arguments of a connection.
#[derive(Clone)]
pub(crate) struct ConnectionArgs {
    client: Arc<Mutex<Option<NewClient>>>,
    pub(super) settings: EndpointSettings,
}

impl ConnectionArgs {
    pub(crate) fn new(
        stream: Box<dyn ByteStream>,
        status: ClientStatus,
        settings: EndpointSettings,
    ) -> Self {
        Self {
            client: Arc::new(Mutex::new(Some((stream, status)))),
            settings,
        }
    }

    /// Takes the stream, and performs the handshake if it is a WebSocket.
    pub(super) async fn open(&self, within: Duration) -> Result<NewClient, AcceptError> {
        let (stream, status) = {
            let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
            client.take().ok_or(AcceptError::Taken)?
        };
        let limits = &self.settings.limits;
        let Some(origins) = &self.settings.origins else {
            return Ok((stream, status));
        };
        let upgraded = web::handshake(stream, origins, limits.frame);
        let upgraded = timeout(within.min(limits.idle), upgraded);
        let upgraded = match &status {
            ClientStatus::Admitted(_) => upgraded.await,
            ClientStatus::Unauthenticated(slot) => tokio::select! {
                biased;
                upgraded = upgraded => upgraded,
                () = slot.evicted() => return Err(AcceptError::Silent),
            },
        };
        Ok((upgraded.map_err(|_| AcceptError::Silent)??, status))
    }
}

/// The error returned when a connection is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcceptError {
    /// The stream was taken by an earlier incarnation: a connection is never restarted.
    #[error("the connection was taken over already")]
    Taken,
    /// The client did not complete the handshake in time.
    #[error("the client did not shake hands in time")]
    Silent,
    /// The WebSocket handshake failed.
    #[error(transparent)]
    Handshake(Box<tungstenite::Error>),
}

impl From<tungstenite::Error> for AcceptError {
    fn from(error: tungstenite::Error) -> Self {
        Self::Handshake(Box::new(error))
    }
}
