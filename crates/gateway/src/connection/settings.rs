//! The arguments of a connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite;

use super::Connection;
use super::wire::too_many_connections;
use crate::access::{Caller, Callers};
use crate::frame::{Frame, FrameKind};
use crate::limits::Limits;
use crate::listener::Endpoint;
use crate::method::Methods;
use crate::unauthenticated::{AdmittedCount, AdmittedSlot, UnauthenticatedSlot};
use crate::websocket::{self, Origins};

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

/// Time limit for sending the reason to a client that is refused.
const REJECTION_TIMEOUT: Duration = Duration::from_millis(100);

impl Endpoint for EndpointSettings {
    type Connection = Connection;

    fn max_unauthenticated(&self) -> usize {
        self.limits.unauthenticated
    }

    async fn admit(
        &self,
        mut stream: Box<dyn ByteStream>,
        slot: UnauthenticatedSlot,
    ) -> Option<ConnectionArgs> {
        let most = self.limits.connections;
        let status = if self.admission.tokens().is_some() {
            ClientStatus::Unauthenticated(slot)
        } else if let Some(slot) = self.admitted_count.admit(most) {
            ClientStatus::Admitted(slot)
        } else {
            let error =
                Frame::new(FrameKind::Error, 0).with_json(&too_many_connections(most).to_json());
            let mut bytes = BytesMut::new();
            if error.encode_into(4096, &mut bytes).is_ok() {
                // A client that does not read it in time sees only the end of the stream.
                let _ = timeout(REJECTION_TIMEOUT, stream.write_all(&bytes)).await;
            }
            return None;
        };
        Some(ConnectionArgs {
            client: Arc::new(Mutex::new(Some((stream, status)))),
            settings: self.clone(),
        })
    }
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
    /// The client needs no token: only the owner can connect.
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
    /// Takes the stream, and performs the handshake if it is a WebSocket.
    pub(super) async fn open(&self, within: Duration) -> Result<NewClient, AcceptError> {
        let client = self.client.lock().take();
        let (stream, status) = client.ok_or(AcceptError::Taken)?;
        let limits = &self.settings.limits;
        let Some(origins) = &self.settings.origins else {
            return Ok((stream, status));
        };
        let upgraded = websocket::handshake(stream, origins, limits.frame);
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
    #[error("the connection has another owner already")]
    Taken,
    /// The client did not complete the handshake in time.
    #[error("the client did not complete the handshake in time")]
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
