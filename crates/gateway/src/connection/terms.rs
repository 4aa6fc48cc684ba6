//! What a connection is made from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite;

use crate::limits::Limits;
use crate::method::Methods;
use crate::stranger::{Known, LetIn, Stranger};
use crate::web::{self, Origins};

/// Octets both ways.
pub(crate) trait Octets: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Octets for T {}

/// What all connections of a door have in common.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) methods: Arc<Methods>,
    pub(crate) limits: Limits,
    /// What a client has to know.
    pub(crate) token: Option<Arc<str>>,
    /// Those who were let in, by all doors together.
    pub(crate) known: Known,
    /// Whose pages may connect, where clients speak WebSocket.
    pub(crate) origins: Option<Arc<Origins>>,
}

/// What a client is when it comes.
#[derive(Debug)]
pub(crate) enum Guest {
    /// It has to say who it is.
    Stranger(Stranger),
    /// The door lets nobody else come.
    LetIn(LetIn),
}

/// A client as it comes.
type Came = (Box<dyn Octets>, Guest);

/// What a connection is made from.
#[derive(Clone)]
pub(crate) struct ConnectionArgs {
    came: Arc<Mutex<Option<Came>>>,
    pub(super) terms: Terms,
}

impl ConnectionArgs {
    pub(crate) fn new(stream: Box<dyn Octets>, guest: Guest, terms: Terms) -> Self {
        Self {
            came: Arc::new(Mutex::new(Some((stream, guest)))),
            terms,
        }
    }

    /// The stream, once the client has shaken hands if it speaks WebSocket.
    pub(super) async fn open(&self, within: Duration) -> Result<Came, Gone> {
        let (stream, guest) = {
            let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
            came.take().ok_or(Gone::Taken)?
        };
        let limits = &self.terms.limits;
        let Some(origins) = &self.terms.origins else {
            return Ok((stream, guest));
        };
        let shaken = web::shake(stream, origins, limits.frame);
        let shaken = timeout(within.min(limits.idle), shaken);
        let shaken = match &guest {
            Guest::LetIn(_) => shaken.await,
            Guest::Stranger(stranger) => tokio::select! {
                shaken = shaken => shaken,
                () = stranger.turned_out() => return Err(Gone::Silent),
            },
        };
        Ok((shaken.map_err(|_| Gone::Silent)??, guest))
    }
}

/// Why a connection does not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Gone {
    /// The stream was taken by an earlier incarnation: a connection has one life.
    #[error("the connection was taken over already")]
    Taken,
    /// The client did not shake hands in time.
    #[error("the client did not shake hands in time")]
    Silent,
    /// The client and the door did not agree on a WebSocket.
    #[error(transparent)]
    Handshake(Box<tungstenite::Error>),
}

impl From<tungstenite::Error> for Gone {
    fn from(error: tungstenite::Error) -> Self {
        Self::Handshake(Box::new(error))
    }
}
