//! A session of a client, as a value.

use std::sync::Arc;

use strowger::Request;
use strowger_pfcp::Message;
use strowger_pfcp::Seid;
use strowger_pfcp::ie::{Cause, CreatedPdr};
use strowger_pfcp::message::{
    Body, SessionDeletionRequest, SessionDeletionResponse, SessionModificationRequest,
    SessionModificationResponse,
};

use super::message::{Answer, ClientMsg, Delete, Modify, Named, Opened};
use super::read::read;
use super::record::Live;
use super::{Association, ClientError, accepted, body_of, unanswered};

/// A session at a node in the UPF role.
#[derive(Clone, Debug)]
pub struct Session {
    association: Association,
    seid: Seid,
    live: Arc<Live>,
}

impl Session {
    pub(super) fn new(association: Association, opened: Opened) -> Self {
        Self {
            association,
            seid: opened.seid,
            live: opened.live,
        }
    }

    /// Our identifier of the session.
    #[must_use]
    pub fn seid(&self) -> Seid {
        self.seid
    }

    /// The peer's identifier of the session; another one after the session was restored.
    #[must_use]
    pub fn remote_seid(&self) -> Seid {
        self.live.remote()
    }

    /// What the peer chose when the session was established, or last restored.
    #[must_use]
    pub fn created(&self) -> Arc<[CreatedPdr]> {
        self.live.created()
    }

    fn named(&self) -> Named {
        Named {
            peer: self.association.peer,
            seid: self.seid,
            remote: self.live.remote(),
        }
    }

    async fn ask<R>(&self, request: R) -> Result<Message, ClientError>
    where
        R: Request<Reply = Answer>,
        ClientMsg: strowger::Accepts<strowger::Ask<R>>,
    {
        let (client, peer) = (&self.association.client, self.association.peer);
        let answer = client.actor.ask_within(request, client.patience).await;
        let octets = answer.map_err(|error| unanswered(&error, peer))??;
        read(peer, &octets)
    }

    /// Changes the session.
    ///
    /// # Errors
    /// When the peer refuses or does not answer, or has lost the session and it is not restored
    /// yet.
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

    /// Asks whether the peer still has the session, by a modification that changes nothing.
    ///
    /// # Errors
    /// When the peer refuses for another reason, or does not answer.
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
    /// When the peer refuses or does not answer, or had lost the session already.
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
