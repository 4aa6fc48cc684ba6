//! A session on virtual time, and a control plane that counts the reported usage.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateBar, CreateFar, CreatePdr, CreateUrr, DestinationInterface, FSeid,
    ForwardingParameters, NodeId, Pdi, PdrId, SourceInterface, UrrId, UsageReportRequest,
    UsageReportTrigger,
};
use strowger_pfcp::message::{
    Body, SessionDeletionResponse, SessionEstablishmentRequest, SessionModificationRequest,
    SessionModificationResponse, SessionReportRequest, SessionReportResponse,
};
use strowger_pfcp::session::{NoAllocator, RuleSet};
use strowger_pfcp::usage::{
    Epoch, FinalReports, PacketBurst, PacketOutcome, ReportArrival, ReportRequestOutcome,
    UsageLimits, UsageMeter, UsageReportFields, UsageTotals,
};
use strowger_pfcp::{Frame, Header, Message, MessageType, Seid, Sequence};

/// Seconds since 1900 at the start of each bench.
pub(crate) const START: u32 = 4_000_000_000;

/// The PDRs: rule 1 detects packets from the user, rule 2 packets to the user.
pub(crate) const UP: u16 = 1;
pub(crate) const DOWN: u16 = 2;

pub(crate) struct Bench {
    pub(crate) zero: Instant,
    pub(crate) now: Instant,
    pub(crate) rules: RuleSet,
    pub(crate) usage: UsageMeter,
    pub(crate) tally: UsageTotals,
    /// Set if an answer was lost, so that a report may be sent again.
    pub(crate) lossy: bool,
}

pub(crate) fn forwarding(id: u32) -> CreateFar {
    CreateFar::new(id, ApplyAction::FORW)
        .forwarding_parameters(ForwardingParameters::new(DestinationInterface::CORE))
}

/// An establishment with two detection rules that these URRs count.
pub(crate) fn establishment(urrs: Vec<CreateUrr>) -> SessionEstablishmentRequest {
    let ids: Vec<UrrId> = urrs.iter().map(|urr| urr.urr_id).collect();
    let pdr = |id: u16, from| {
        CreatePdr::new(id, Pdi::new(from))
            .precedence(100)
            .far_id(u32::from(id))
            .urr_ids(ids.clone())
    };
    let address = IpAddr::from([127, 0, 0, 7]);
    SessionEstablishmentRequest::new(NodeId::fqdn("smf"), FSeid::new(Seid(7), address))
        .create_pdrs([
            pdr(UP, SourceInterface::ACCESS),
            pdr(DOWN, SourceInterface::CORE),
        ])
        .create_fars([forwarding(1), forwarding(2)])
        .create_urrs(urrs)
}

fn bytes(body: impl Into<Body>) -> Vec<u8> {
    let message = Message::session(Seid(1), Sequence::new(1), body);
    message.encode().expect("a sound message")
}

/// Decodes elements as the body of a message.
fn read(kind: MessageType, elements: &[u8]) -> Message {
    let header = Header::session(kind, Seid(1), Sequence::new(1));
    let bytes = strowger_pfcp::endpoint::message(&header, elements).expect("a short message");
    Message::decode(&bytes).expect("a sound message")
}

#[expect(
    clippy::disallowed_methods,
    reason = "an instant to start virtual time from"
)]
fn start() -> Instant {
    Instant::now()
}

impl Bench {
    pub(crate) fn new(urrs: impl IntoIterator<Item = CreateUrr>) -> Self {
        Self::of(
            establishment(urrs.into_iter().collect()),
            UsageLimits::default(),
        )
    }

    pub(crate) fn of(request: SessionEstablishmentRequest, limits: UsageLimits) -> Self {
        let zero = start();
        let bytes = bytes(request);
        let frame = Frame::decode(&bytes).expect("a message");
        let rules = RuleSet::establish(&frame, &mut NoAllocator)
            .expect("sound rules")
            .rules;
        assert!(UsageMeter::concerns(&rules));
        let epoch = Epoch::new(zero, Duration::from_secs(START.into()));
        Self {
            zero,
            now: zero,
            usage: UsageMeter::new(zero, epoch, limits, &rules),
            rules,
            tally: UsageTotals::default(),
            lossy: false,
        }
    }

    /// Advances to a time, in seconds since the start.
    pub(crate) fn at(&mut self, seconds: f64) {
        let at = self.zero + Duration::from_secs_f64(seconds);
        assert!(at >= self.now);
        self.now = at;
        self.usage.handle_timeout(at);
    }

    pub(crate) fn traffic(&mut self, pdr: u16, bytes: u64) -> PacketOutcome {
        self.packets(pdr, 1, bytes)
    }

    pub(crate) fn packets(&mut self, pdr: u16, packets: u64, bytes: u64) -> PacketOutcome {
        let traffic = PacketBurst {
            pdr: PdrId(pdr),
            packets,
            bytes,
            events: 0,
        };
        self.usage.handle_traffic(self.now, traffic)
    }

    /// The next timeout, in seconds since the start.
    pub(crate) fn deadline(&self) -> Option<f64> {
        let at = self.usage.poll_timeout()?;
        Some((at - self.zero).as_secs_f64())
    }

    /// The request to be sent now.
    pub(crate) fn request(&mut self) -> Option<SessionReportRequest> {
        let body = self.usage.poll_request(self.now)?;
        match read(MessageType::SESSION_REPORT_REQUEST, &body).body {
            Body::SessionReportRequest(request) => Some(*request),
            other => panic!("not a report: {other:?}"),
        }
    }

    pub(crate) fn answer(&mut self, response: SessionReportResponse) -> ReportRequestOutcome {
        let bytes = bytes(response);
        let frame = Frame::decode(&bytes).expect("a message");
        self.usage.handle_answer(self.now, &frame)
    }

    /// Counts a report. Reports in an answer overtake waiting ones.
    pub(crate) fn hear<'a>(&mut self, report: impl Into<UsageReportFields<'a>>) {
        let arrival = self.tally.add(report);
        assert!(
            arrival != ReportArrival::Repeated || self.lossy,
            "told twice"
        );
    }

    /// The usage reports that are sent now; they are answered and counted.
    pub(crate) fn reports(&mut self) -> Vec<UsageReportRequest> {
        let mut all = Vec::new();
        while let Some(request) = self.request() {
            for report in request.usage_reports {
                self.hear(&report);
                all.push(report);
            }
            self.answer(SessionReportResponse::new(Cause::REQUEST_ACCEPTED));
        }
        all
    }

    /// The only report that is sent now.
    pub(crate) fn report(&mut self) -> UsageReportRequest {
        let mut reports = self.reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        reports.remove(0)
    }

    pub(crate) fn modify(
        &mut self,
        request: SessionModificationRequest,
    ) -> (FinalReports, SessionModificationResponse) {
        let bytes = bytes(request);
        let frame = Frame::decode(&bytes).expect("a message");
        let change = self
            .rules
            .modify(&frame, &mut NoAllocator)
            .expect("a sound change");
        self.rules = change.rules;
        let finals = self.usage.modify(self.now, &self.rules, &[&frame]);
        let elements = [&[0, 19, 0, 1, 1][..], &finals.elements].concat();
        let read = read(MessageType::SESSION_MODIFICATION_RESPONSE, &elements);
        let Body::SessionModificationResponse(response) = read.body else {
            panic!("not an answer to a modification");
        };
        for report in &response.usage_reports {
            self.hear(report);
        }
        (finals, *response)
    }

    pub(crate) fn delete(mut self) -> (FinalReports, SessionDeletionResponse, UsageTotals) {
        let finals = self.usage.clone().finish(self.now);
        let elements = [&[0, 19, 0, 1, 1][..], &finals.elements].concat();
        let answer = read(MessageType::SESSION_DELETION_RESPONSE, &elements);
        let Body::SessionDeletionResponse(response) = answer.body else {
            panic!("not an answer to a deletion");
        };
        for report in &response.usage_reports {
            self.hear(report);
        }
        for body in &finals.more {
            let Body::SessionReportRequest(more) =
                read(MessageType::SESSION_REPORT_REQUEST, body).body
            else {
                panic!("not a report");
            };
            for report in &more.usage_reports {
                self.hear(report);
            }
        }
        (finals, *response, self.tally)
    }
}

pub(crate) fn bytes_of(report: &UsageReportRequest) -> (u64, u64) {
    let volume = report.volume_measurement.expect("volume is measured");
    let told = (volume.uplink_volume, volume.downlink_volume);
    let (Some(up), Some(down)) = told else {
        panic!("both ways are told");
    };
    assert_eq!(volume.total_volume, Some(up + down));
    (up, down)
}

pub(crate) fn has(report: &UsageReportRequest, trigger: UsageReportTrigger) -> bool {
    report.usage_report_trigger == trigger
}

pub(crate) fn bar(id: u8) -> CreateBar {
    CreateBar::new(id)
}
