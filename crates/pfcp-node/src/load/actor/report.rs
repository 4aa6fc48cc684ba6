//! Session reports of the node, which are acknowledged and counted.

use std::sync::Arc;
use std::time::Instant;

use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::{
    Cause, Ie as _, UsageReportDeletionResponse, UsageReportModificationResponse,
    UsageReportRequest,
};
use strowger_pfcp::session::Refusal;
use strowger_pfcp::transaction::TransactionId;
use strowger_pfcp::{Frame, IeType};

use super::LoadActor;
use crate::client::check_report;

impl LoadActor {
    pub(super) fn report(&mut self, now: Instant, transaction: TransactionId, bytes: &Arc<[u8]>) {
        let Ok(frame) = Frame::decode(bytes) else {
            return self.protocol.abandon(now, transaction);
        };
        let seid = frame.header.seid.unwrap_or_default();
        let remote = self.remote.get(&seid);
        let checked = match remote {
            Some(_) => check_report(&frame),
            None => Err(Refusal::new(Cause::SESSION_CONTEXT_NOT_FOUND)),
        };
        let body = match &checked {
            Ok(()) => BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED),
            Err(refusal) => BodyBuilder::new().refusal(refusal),
        };
        let header = answer_header(&frame.header, remote.copied());
        match message(&header, body.as_slice()) {
            Ok(answer) => self.protocol.respond(now, transaction, answer.into()),
            Err(_) => return self.protocol.abandon(now, transaction),
        }
        if checked.is_err() {
            return;
        }
        let mut tlvs = frame.tlvs().filter_map(Result::ok);
        if tlvs.any(|tlv| tlv.ie == IeType::DOWNLINK_DATA_REPORT) {
            self.resume_idle_session(now, seid);
        }
        self.count_usage(bytes);
    }

    /// Counts the usage reports in a message of the node.
    pub(super) fn count_usage(&self, bytes: &[u8]) {
        let Ok(frame) = Frame::decode(bytes) else {
            return;
        };
        let volumes = frame.tlvs().filter_map(Result::ok).filter_map(|tlv| {
            let volume = match tlv.ie {
                IeType::USAGE_REPORT_REQUEST => {
                    UsageReportRequest::decode(tlv.value)
                        .ok()?
                        .volume_measurement
                }
                IeType::USAGE_REPORT_DELETION_RESPONSE => {
                    UsageReportDeletionResponse::decode(tlv.value)
                        .ok()?
                        .volume_measurement
                }
                IeType::USAGE_REPORT_MODIFICATION_RESPONSE => {
                    UsageReportModificationResponse::decode(tlv.value)
                        .ok()?
                        .volume_measurement
                }
                _ => return None,
            };
            let of = |bytes: Option<u64>| bytes.unwrap_or_default();
            Some(volume.map_or(0, |one| of(one.uplink_volume) + of(one.downlink_volume)))
        });
        for bytes in volumes {
            let mut stats = self.stats.lock();
            stats.usage_reports += 1;
            stats.usage_bytes = stats.usage_bytes.saturating_add(bytes);
        }
    }
}
