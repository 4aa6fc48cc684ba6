//! The contents of a store as text.

use std::io::Write;
use std::time::Duration;

use super::line::{
    Bytes, EndLine, EntityLine, ExportLine, FORMAT, FormatLine, RawLine, RowLine, VERSION,
    write_line,
};
use super::scan::{Event, StoredHead, StoredKey, rows_of, walk};
use super::{
    DamagedEntity, EntityCondition, EntityInfo, OnProgress, StoppedStore, ToolError,
    UnreadableRange,
};
use crate::store::disk::rows::{HEAD, decode, entity_prefix};

/// The result of [`StoppedStore::export`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportReport {
    /// The number of entities that were exported, with those in quarantine.
    pub entities: u64,
    /// The number of their rows.
    pub rows: u64,
    /// The entities that were left out, because they are damaged.
    pub damaged: Vec<DamagedEntity>,
    /// The parts of the database that cannot be read.
    pub unreadable: Vec<UnreadableRange>,
}

impl StoppedStore {
    /// Writes the contents as JSON, one object a line: the version of the format, then each entity
    /// followed by its rows, then the lists beside the entities and the quarantine, and at the end
    /// the numbers of entities and rows.
    ///
    /// Bytes that are not text are written as `{"base64": ".."}`. Damaged entities are left out.
    ///
    /// # Errors
    /// Fails if the output cannot be written, or if the database fails.
    pub fn export(
        &self,
        output: &mut dyn Write,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<ExportReport, ToolError> {
        let first = FormatLine {
            format: FORMAT.to_owned(),
            version: VERSION,
        };
        write_line(output, &ExportLine::Store(first))?;
        let mut report = ExportReport::default();
        let snapshot = self.view.snapshot();
        walk(
            &self.view.rows,
            snapshot.clone(),
            on_progress,
            &mut |event| {
                match event {
                    Event::Entity(info, head) => match (&info.condition, head) {
                        (EntityCondition::Damaged(detail), _) => {
                            let (info, detail) = (info.clone(), detail.clone());
                            report.damaged.push(DamagedEntity { info, detail });
                        }
                        (_, Some(head)) => {
                            write_line(output, &ExportLine::Entity(entity_line(info, head)))?;
                            report.entities += 1;
                            report.rows += self.export_rows(output, &snapshot, info)?;
                        }
                        // An entity without a head is damaged.
                        (_, None) => {}
                    },
                    Event::Other(StoredKey::Index, key, value) => {
                        // A damaged list is made again from the entities, or not at all.
                        if decode(key, value).is_some() {
                            write_line(output, &ExportLine::Index(raw_line(key, value)))?;
                        }
                    }
                    Event::Other(StoredKey::Quarantined(original), _, value) => {
                        let line = ExportLine::Quarantined(raw_line(original, value));
                        write_line(output, &line)?;
                    }
                    Event::Other(..) => {}
                    Event::Gap(range) => report.unreadable.push(range),
                }
                Ok(())
            },
        )?;
        let end = EndLine {
            entities: report.entities,
            rows: report.rows,
        };
        write_line(output, &ExportLine::End(end))?;
        output.flush().map_err(ToolError::Output)?;
        Ok(report)
    }

    fn export_rows(
        &self,
        output: &mut dyn Write,
        snapshot: &fjall::Snapshot,
        info: &EntityInfo,
    ) -> Result<u64, ToolError> {
        let prefix = entity_prefix(&info.entity);
        let source = (&self.view.rows, snapshot);
        let mut rows = 0;
        rows_of(
            &self.path,
            source,
            &prefix,
            &mut |table, row, (key, value)| {
                // All rows were verified.
                if let (true, Some((sequence, payload))) = (table != HEAD, decode(key, value)) {
                    let line = RowLine {
                        table,
                        key: Bytes(row.to_vec()),
                        sequence: sequence.0,
                        value: Bytes(payload.to_vec()),
                    };
                    write_line(output, &ExportLine::Row(line))?;
                    rows += 1;
                }
                Ok(())
            },
        )?;
        Ok(rows)
    }
}

fn entity_line(info: &EntityInfo, head: &StoredHead) -> EntityLine {
    let millis = |at: Duration| u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
    EntityLine {
        kind: info.entity.kind().to_owned(),
        key: info.entity.key().to_owned(),
        sequence: info.sequence.0,
        fence: head.fence.0,
        wake_ms: head.wake.map(millis),
        quarantined: head.is_quarantined,
        extra: (!head.extra.is_empty()).then(|| Bytes(head.extra.clone())),
    }
}

fn raw_line(key: &[u8], value: &[u8]) -> RawLine {
    RawLine {
        key: Bytes(key.to_vec()),
        value: Bytes(value.to_vec()),
    }
}
