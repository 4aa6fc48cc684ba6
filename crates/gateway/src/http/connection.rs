//! One client: one request, one answer; an agent with the token asks as often as it likes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use serde_json::json;
use strowger::{Actor, ActorSystem, Context, MailboxSpec, Rank, Top, TopQuery};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::request::{self, Page, Parsed, Request, Status};
use super::{READER, Shown};
use crate::metric::{Exposition, Kind};
use crate::reader::{self, Read};
use crate::stranger::Stranger;
use crate::vital::Usage;

/// What a connection is made from.
#[derive(Clone)]
pub(crate) struct ConnectionArgs {
    came: Arc<Mutex<Option<(TcpStream, Stranger)>>>,
    shown: Arc<Shown>,
}

impl ConnectionArgs {
    pub(super) fn new(stream: TcpStream, stranger: Stranger, shown: Arc<Shown>) -> Self {
        Self {
            came: Arc::new(Mutex::new(Some((stream, stranger)))),
            shown,
        }
    }
}

/// Tells a connection to begin, and is all that it takes.
#[derive(Debug)]
pub(crate) struct Serve;

/// The stream was taken by an earlier incarnation: a connection has one life.
#[derive(Debug, thiserror::Error)]
#[error("the connection was served before")]
pub(crate) struct Gone;

pub(crate) struct HttpConnection {
    stream: TcpStream,
    /// Its place, until it has shown the token.
    stranger: Option<Stranger>,
    shown: Arc<Shown>,
    /// All must be over by then.
    until: Instant,
}

impl Actor for HttpConnection {
    type Msg = Serve;
    type Args = ConnectionArgs;
    type Error = Gone;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start(args: ConnectionArgs, cx: &mut Context<Self>) -> Result<Self, Gone> {
        let mut came = args.came.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, stranger) = came.take().ok_or(Gone)?;
        let until = cx.now() + args.shown.limits.time;
        Ok(Self {
            stream,
            stranger: Some(stranger),
            shown: args.shown,
            until,
        })
    }

    async fn handle(&mut self, Serve: Serve, cx: &mut Context<Self>) -> Result<(), Gone> {
        if let Err(error) = self.serve(&cx.system()).await {
            tracing::debug!(%error, "a client has gone");
        }
        cx.stop();
        Ok(())
    }
}

/// How long a client that has asked keeps its place though others wait for it.
const ANSWERED: Duration = Duration::from_secs(1);

/// What is written after a request that came too late.
const FAREWELL: Duration = Duration::from_millis(100);

/// So much of what a client goes on sending is read, so that it gets to read the answer.
const REST: usize = 64 * 1024;

impl HttpConnection {
    async fn serve(&mut self, system: &ActorSystem) -> std::io::Result<()> {
        let Some(stranger) = self.stranger.take() else {
            return Ok(());
        };
        let asked = tokio::select! {
            asked = self.request() => Some(asked?),
            () = stranger.turned_out() => None,
        };
        let Some(asked) = asked else {
            return self.turn_away();
        };
        stranger.has_asked(ANSWERED);
        let (request, read) = match asked {
            None => return Ok(()),
            Some(Ok(asked)) => asked,
            Some(Err(status)) => return self.refuse(status, &stranger).await,
        };
        if request.page != Page::Agents {
            let answered = async {
                let (status, kind, body) = self.answer(request.page, system).await;
                self.tell(status, kind, &body, request.body).await
            };
            return tokio::select! {
                told = answered => told,
                () = stranger.turned_out() => Ok(()),
            };
        }
        let Some(agents) = self.shown.agents.get().cloned() else {
            return self.refuse(Status::NotFound, &stranger).await;
        };
        if !request::token(&read).is_some_and(|token| agents.knows(token)) {
            // It is told why, and may ask what it may send.
            let until = self.until;
            let served = agents.serve_once(read, &mut self.stream);
            return tokio::select! {
                served = timeout_at(until, served) => served.unwrap_or(Ok(())),
                () = stranger.turned_out() => Ok(()),
            };
        }
        let Some(entered) = agents.enter(self.shown.limits.agents) else {
            return self.refuse(Status::Unavailable, &stranger).await;
        };
        drop(stranger);
        let pages = Pages {
            shown: Arc::clone(&self.shown),
            system: system.clone(),
        };
        entered.serve(read, &mut self.stream, &pages).await
    }

    /// Says why a request is refused.
    async fn refuse(&mut self, status: Status, stranger: &Stranger) -> std::io::Result<()> {
        tokio::select! {
            told = self.tell(status, PLAIN, status.told(), true) => told,
            () = stranger.turned_out() => Ok(()),
        }
    }

    /// Says that others wait for the place, as far as that goes without waiting.
    fn turn_away(&self) -> std::io::Result<()> {
        let turned_away = &self.shown.answered.turned_away;
        turned_away.fetch_add(1, Ordering::Relaxed);
        let _ = self.stream.try_write(
            b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\
              Retry-After: 1\r\n\r\n",
        );
        Ok(())
    }

    /// Answers, and lets the client read it.
    async fn tell(
        &mut self,
        status: Status,
        kind: &str,
        body: &str,
        with_body: bool,
    ) -> std::io::Result<()> {
        self.shown.answered.count(status);
        let mut answer = format!(
            "HTTP/1.1 {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
            status.line(),
            body.len(),
        );
        if status == Status::MethodNotAllowed {
            answer.push_str("Allow: GET, HEAD\r\n");
        }
        if status == Status::Unavailable {
            answer.push_str("Retry-After: 1\r\n");
        }
        answer.push_str("\r\n");
        if with_body {
            answer.push_str(body);
        }
        let until = self.until.max(Instant::now() + FAREWELL);
        let told = async {
            self.stream.write_all(answer.as_bytes()).await?;
            self.stream.shutdown().await?;
            self.drain().await
        };
        timeout_at(until, told).await.unwrap_or(Ok(()))
    }

    /// Reads the head of a request; nothing if the client left before it sent any.
    async fn request(&mut self) -> std::io::Result<Option<Result<(Request, BytesMut), Status>>> {
        let most = self.shown.limits.head;
        let mut octets = BytesMut::with_capacity(most.min(1024));
        loop {
            let read = timeout_at(self.until, self.stream.read_buf(&mut octets)).await;
            match read {
                Err(_) => return Ok(Some(Err(Status::TimedOut))),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(0)) if octets.is_empty() => return Ok(None),
                Ok(Ok(0)) => return Ok(Some(Err(Status::BadRequest))),
                Ok(Ok(_)) => {}
            }
            match request::parse(&octets, most) {
                Parsed::Partial => {}
                Parsed::Request(request) => return Ok(Some(Ok((request, octets)))),
                Parsed::Refused(status) => return Ok(Some(Err(status))),
            }
        }
    }

    /// Closing a socket with unread octets in it would reset the connection, and the answer could
    /// be lost with it.
    async fn drain(&mut self) -> std::io::Result<()> {
        let mut left = REST;
        let mut octets = [0; 1024];
        while left > 0 {
            match self.stream.read(&mut octets).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok(())
    }

    async fn answer(&self, page: Page, system: &ActorSystem) -> (Status, &'static str, String) {
        // A reading of all mailboxes is wanted in half of the time that is left.
        let left = self.until.saturating_duration_since(Instant::now()) / 2;
        self.shown.answer(page, system, left).await
    }
}

/// The pages, for connections of agents: a client may ask for them on one that it has.
pub(crate) struct Pages {
    shown: Arc<Shown>,
    system: ActorSystem,
}

impl Pages {
    /// The status, type and content of an answer.
    pub(crate) async fn answer(&self, method: &str, path: &str) -> (u16, &'static str, String) {
        let (status, kind, body) = match request::meant(method, path) {
            Parsed::Request(request) => {
                let left = self.shown.limits.time / 2;
                self.shown.answer(request.page, &self.system, left).await
            }
            Parsed::Refused(status) => (status, PLAIN, status.told().to_owned()),
            Parsed::Partial => (Status::BadRequest, PLAIN, String::new()),
        };
        self.shown.answered.count(status);
        (status.number(), kind, body)
    }
}

impl Shown {
    async fn answer(
        &self,
        page: Page,
        system: &ActorSystem,
        left: Duration,
    ) -> (Status, &'static str, String) {
        match page {
            Page::Health => (Status::Ok, PLAIN, "ok\n".to_owned()),
            Page::Readiness => self.readiness(system),
            Page::Metrics => self.metrics(system, left).await,
            // Served before.
            Page::Agents => (Status::NotFound, PLAIN, Status::NotFound.told().to_owned()),
        }
    }

    fn readiness(&self, system: &ActorSystem) -> (Status, &'static str, String) {
        let mut obstacles = self.vitals.obstacles();
        if system.is_shutting_down() {
            obstacles.insert(0, ("shutdown", "the node is shutting down".to_owned()));
        }
        let status = match obstacles.is_empty() {
            true => Status::Ok,
            false => Status::Unavailable,
        };
        let reason = |(check, reason)| json!({ "check": check, "reason": reason });
        let reasons: Vec<_> = obstacles.into_iter().map(reason).collect();
        let body = json!({ "ready": status == Status::Ok, "reasons": reasons });
        (status, JSON, format!("{body}\n"))
    }

    async fn metrics(
        &self,
        system: &ActorSystem,
        left: Duration,
    ) -> (Status, &'static str, String) {
        let mut page = Exposition::default();
        self.recorder.write(&mut page);
        if let Some(top) = read(system, left).await {
            mailboxes(&top, &mut page);
        }
        limits(&self.vitals.usages().collect::<Vec<_>>(), &mut page);
        let counts = self.answered.by_status.each_ref();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        let turned_away = self.answered.turned_away.load(Ordering::Relaxed);
        request::write(counts, turned_away, &mut page);
        crate::process::write(&mut page);
        self.vitals.write(&mut page);
        (Status::Ok, EXPOSITION, page.into_string())
    }
}

/// A reading of all mailboxes, if there is one in time.
async fn read(system: &ActorSystem, left: Duration) -> Option<Top> {
    let reader = reader::find(system, READER)?;
    let query = TopQuery::new(Rank::Depth).rows(1);
    reader.ask_within(Read(query), left).await.ok()
}

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

fn mailboxes(top: &Top, page: &mut Exposition) {
    let totals = &top.totals;
    let deepest = top.rows.first().map_or(0, |row| row.info.depth);
    for (name, help, value) in [
        (
            "strowger_mailbox_messages",
            "Messages that wait in all mailboxes.",
            totals.depth as f64,
        ),
        (
            "strowger_mailbox_messages_max",
            "Messages that wait in the deepest mailbox.",
            deepest as f64,
        ),
        (
            "strowger_mailboxes_nearly_full",
            "Mailboxes filled to at least 85 % of their capacity.",
            totals.nearly_full as f64,
        ),
        (
            "strowger_actor_memory_bytes",
            "Estimated memory of all actors and their mailboxes.",
            totals.memory as f64,
        ),
        (
            "strowger_messages_per_second",
            "Messages that actors took out between the last two readings.",
            totals.rate,
        ),
        (
            "strowger_busy_threads",
            "Threads that actors kept at work between the last two readings.",
            totals.load,
        ),
    ] {
        page.one(name, Kind::Gauge, help, value);
    }
}

fn limits(usages: &[(&'static str, Usage)], page: &mut Exposition) {
    let help = "How much of a limit is used.";
    let mut used = page.family("strowger_limit_used", Kind::Gauge, help);
    for (name, usage) in usages {
        used.sample(&[("limit", name)], usage.used);
    }
    let help = "The most that a limit allows.";
    let mut most = page.family("strowger_limit_max", Kind::Gauge, help);
    for (name, usage) in usages {
        if let Some(value) = usage.most {
            most.sample(&[("limit", name)], value);
        }
    }
}
