//! The service for agents in a build without the feature `mcp`: there is none.

use hyper::Request;
use hyper::body::Incoming;

use crate::http::response::HttpResponse;
use crate::unauthenticated::AdmittedSlot;

/// A service that cannot exist, so the HTTP endpoint treats `/mcp` like any other unknown path.
pub(crate) enum McpHttpService {}

impl McpHttpService {
    pub(crate) const fn knows(&self, _: &[u8]) -> bool {
        match *self {}
    }

    pub(crate) const fn admit(&self, _: usize) -> Option<AdmittedSlot> {
        match *self {}
    }

    pub(crate) async fn respond(&self, _: Request<Incoming>) -> HttpResponse {
        match *self {}
    }
}
