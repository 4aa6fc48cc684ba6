//! A handle to a session of a client.

use std::sync::Arc;

use strowger::Request;
use strowger_pfcp::Message;
use strowger_pfcp::Seid;
use strowger_pfcp::ie::{Cause, CreatedPdr};
use strowger_pfcp::message::{
    Body, SessionDeletionRequest, SessionDeletionResponse, SessionModificationRequest,
    SessionModificationResponse,
};

use super::message::{ClientMsg, ClientReply, Delete, EstablishedSession, Modify, SessionIdentity};
use super::read::read;
use super::sessions::RemoteSession;
use super::{Association, ClientError, accepted, body_of, unanswered};

/// A session at a node in the UPF role.
#[derive(Clone, Debug)]
pub struct Session {
    association: Association,
    seid: Seid,
    remote: Arc<RemoteSession>,
}

impl Session {
    pub(super) fn new(association: Association, opened: EstablishedSession) -> Self {
        Self {
            association,
            seid: opened.seid,
            remote: opened.remote,
        }
    }

    /// Returns our SEID of the session.
    #[must_use]
    pub fn seid(&self) -> Seid {
        self.seid
    }

    /// Returns the peer's SEID of the session, which changes when the session is restored.
    #[must_use]
    pub fn remote_seid(&self) -> Seid {
        self.remote.seid()
    }

    /// Returns the values that the peer chose when the session was established or last restored.
    #[must_use]
    pub fn created(&self) -> Arc<[CreatedPdr]> {
        self.remote.created()
    }

    fn named(&self) -> SessionIdentity {
        SessionIdentity {
            peer: self.association.peer,
            seid: self.seid,
            remote: self.remote.seid(),
        }
    }

    async fn ask<R>(&self, request: R) -> Result<Message, ClientError>
    where
        R: Request<Reply = ClientReply>,
        ClientMsg: strowger::Accepts<strowger::Ask<R>>,
    {
        let (client, peer) = (&self.association.client, self.association.peer);
        let answer = client
            .actor
            .ask_within(request, client.response_timeout)
            .await;
        let bytes = answer.map_err(|error| unanswered(&error, peer))??;
        read(peer, &bytes)
    }

    /// Modifies the session.
    ///
    /// # Errors
    /// Returns an error if the peer refuses or does not answer, or if the peer lost the session and
    /// it has not been restored yet.
    pub async fn modify(
        &self,
        request: SessionModificationRequest,
    ) -> Result<SessionModificationResponse, ClientError> {
        let peer = self.association.peer;
        let request = Modify {
            session: self.named(),
            body: body_of(request)?,
        };
        match self.ask(request).await?.body {
            Body::SessionModificationResponse(answer) => {
                let offending = answer.offending_ie.as_ref().map(|offending| offending.ie());
                accepted(peer, answer.cause, offending).map(|()| *answer)
            }
            _ => Err(ClientError::NoAnswer { peer }),
        }
    }

    /// Checks whether the peer still has the session, with a modification that changes nothing.
    ///
    /// # Errors
    /// Returns an error if the peer refuses for another reason, or does not answer.
    pub async fn audit(&self) -> Result<bool, ClientError> {
        match self.modify(SessionModificationRequest::new()).await {
            Ok(_) => Ok(true),
            Err(ClientError::Restoring { .. }) => Ok(false),
            Err(error) if error.cause() == Some(Cause::SESSION_CONTEXT_NOT_FOUND) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the session.
    ///
    /// # Errors
    /// Returns an error if the peer refuses or does not answer, or if it had already lost the
    /// session.
    pub async fn delete(self) -> Result<SessionDeletionResponse, ClientError> {
        let peer = self.association.peer;
        let request = Delete {
            session: self.named(),
            body: body_of(SessionDeletionRequest::new())?,
        };
        match self.ask(request).await?.body {
            Body::SessionDeletionResponse(answer) => {
                let offending = answer.offending_ie.as_ref().map(|offending| offending.ie());
                accepted(peer, answer.cause, offending).map(|()| *answer)
            }
            _ => Err(ClientError::NoAnswer { peer }),
        }
    }
}
