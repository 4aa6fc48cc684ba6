//! Deployments in progress. Each operation on a component runs as a task of the node, which callers
//! watch, cancel or leave running.
//!
//! ```text
//!  reading ─▶ waiting ─▶ compiling ─▶ starting ─▶ over
//!     └───────────┴──────────┴─▶ cancelled: on demand, or at its deadline
//! ```
//!
//! An operation that has begun to start runs to its end, whether or not its caller still waits.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use strowger::{Fault, FaultCode};
use strowger_wasm::host::LoadStage;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::stats::milliseconds;
use crate::exit::{CliResult, Failure};

/// Maximum number of deployments in progress.
const MAX_RUNNING: usize = 32;
/// Time for which an outcome is kept for callers that ask again.
const OUTCOME_TTL: Duration = Duration::from_secs(60);

/// The stage of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Reading,
    Waiting,
    Compiling,
    Starting,
}

impl Stage {
    const fn word(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Waiting => "waiting",
            Self::Compiling => "compiling",
            Self::Starting => "starting",
        }
    }
}

impl From<LoadStage> for Stage {
    fn from(stage: LoadStage) -> Self {
        match stage {
            LoadStage::Waiting => Self::Waiting,
            _ => Self::Compiling,
        }
    }
}

/// The reason for a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CancelReason {
    Requested,
    DeadlinePassed(Duration),
}

type DeploymentOutcome = Result<Value, Fault>;

#[derive(Debug)]
struct DeploymentState {
    stage: Stage,
    bytes: usize,
    cancelled: Option<CancelReason>,
    outcome: Option<(Instant, DeploymentOutcome)>,
}

/// A deployment in progress, or its outcome.
#[derive(Debug)]
pub(super) struct Deployment {
    begun: Instant,
    within: Option<Duration>,
    state: watch::Sender<DeploymentState>,
}

impl Deployment {
    fn new(within: Option<Duration>) -> Self {
        let state = DeploymentState {
            stage: Stage::Reading,
            bytes: 0,
            cancelled: None,
            outcome: None,
        };
        Self {
            begun: Instant::now(),
            within,
            state: watch::Sender::new(state),
        }
    }

    /// Records the stage.
    pub(super) fn set_stage(&self, stage: Stage) {
        self.state.send_modify(|state| state.stage = stage);
    }

    /// Records the size of the component in bytes.
    pub(super) fn set_size(&self, bytes: usize) {
        self.state.send_modify(|state| state.bytes = bytes);
    }

    /// Runs the work before the start, unless the deployment is cancelled. Once started, it runs to
    /// its end.
    pub(super) async fn run_until_start<T>(
        &self,
        loading: impl Future<Output = CliResult<T>>,
    ) -> CliResult<T> {
        let loaded = tokio::select! {
            biased;
            () = self.until_cancelled() => None,
            loaded = loading => Some(loaded),
        };
        match loaded {
            Some(Err(failure)) => Err(failure),
            Some(Ok(loaded)) => self.start().map(|()| loaded),
            // `start` fails with the reason for the cancellation.
            None => self
                .start()
                .and(Err(Failure::outside("the deployment was cancelled"))),
        }
    }

    /// Marks the deployment as starting; from then on it cannot be cancelled.
    pub(super) fn start(&self) -> CliResult {
        let mut refused = None;
        // `send_modify` holds the lock of the state: either the cancellation or the start is first.
        self.state.send_modify(|state| match state.cancelled {
            Some(reason) => refused = Some(failure(reason, state.stage)),
            None => state.stage = Stage::Starting,
        });
        refused.map_or(Ok(()), Err)
    }

    /// Waits until the deployment is cancelled, at the latest by its deadline.
    async fn until_cancelled(&self) {
        let mut seen = self.state.subscribe();
        let asked = async {
            // Cannot fail: `self` owns the sender.
            let _ = seen.wait_for(|state| state.cancelled.is_some()).await;
        };
        let Some(within) = self.within else {
            return asked.await;
        };
        tokio::select! {
            () = asked => {}
            () = sleep_until(self.begun + within) => {
                self.cancel(CancelReason::DeadlinePassed(within));
            }
        }
    }

    /// Cancels the deployment unless it has begun to start. Returns `true` if it will not start.
    fn cancel(&self, reason: CancelReason) -> bool {
        let mut off = false;
        self.state.send_modify(|state| {
            if state.stage != Stage::Starting && state.outcome.is_none() {
                state.cancelled.get_or_insert(reason);
                off = true;
            }
        });
        off
    }

    fn finish(&self, outcome: DeploymentOutcome) {
        self.state.send_modify(|state| {
            state
                .outcome
                .get_or_insert_with(|| (Instant::now(), outcome));
        });
    }

    async fn finished(&self) -> DeploymentOutcome {
        let mut seen = self.state.subscribe();
        let state = seen.wait_for(|state| state.outcome.is_some()).await;
        let outcome = state.ok().and_then(|state| state.outcome.clone());
        outcome.map_or_else(|| Err(lost_outcome()), |(_, outcome)| outcome)
    }

    fn is_over(&self) -> bool {
        self.state.borrow().outcome.is_some()
    }

    fn is_expired(&self) -> bool {
        let over = self.state.borrow().outcome.as_ref().map(|(at, _)| *at);
        over.is_some_and(|at| at.elapsed() > OUTCOME_TTL)
    }

    /// Returns the progress, for clients that watch it.
    fn progress(&self, id: u64) -> Value {
        let state = self.state.borrow();
        json!({
            "id": id,
            "stage": state.stage.word(),
            "octets": state.bytes,
            "elapsed_ms": milliseconds(self.begun.elapsed()),
            "cancelled": state.cancelled.is_some(),
            "over": false,
        })
    }
}

/// Describes why a deployment was cancelled, and what continues nevertheless.
fn failure(reason: CancelReason, stage: Stage) -> Failure {
    let (what, again) = match reason {
        CancelReason::Requested => ("cancelled".to_owned(), "try again"),
        CancelReason::DeadlinePassed(within) => (
            format!("cancelled at its deadline, after {within:?}"),
            "try again, with a later --deadline if needed",
        ),
    };
    let (doing, hint) = match stage {
        Stage::Reading => (
            "reading its files",
            format!("check the file system, and {again}"),
        ),
        Stage::Waiting => (
            "waiting for the compilation of other components",
            again.to_owned(),
        ),
        Stage::Compiling | Stage::Starting => (
            "compiling it",
            format!("the compilation continues in the background, and its result is kept: {again}"),
        ),
    };
    Failure::outside(format!(
        "{what} while {doing}: the component was not started"
    ))
    .hint(hint)
}

fn lost_outcome() -> Fault {
    Fault::new(FaultCode::Failed, "the deployment ended without an outcome")
}

/// All deployments in progress, and recent outcomes.
#[derive(Debug, Default)]
pub(super) struct Deployments {
    last: AtomicU64,
    by_id: Mutex<BTreeMap<u64, Arc<Deployment>>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Deployments {
    /// Begins a deployment. It is cancelled if it has not begun to start within `within`.
    pub(super) fn begin<F>(
        &self,
        within: Option<Duration>,
        work: impl FnOnce(Arc<Deployment>) -> F,
    ) -> Result<(u64, CallerGuard), Fault>
    where
        F: Future<Output = DeploymentOutcome> + Send + 'static,
    {
        let deployment = Arc::new(Deployment::new(within));
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        {
            let mut by_id = self.by_id.lock();
            by_id.retain(|_, one| !one.is_expired());
            let running = by_id.values().filter(|one| !one.is_over()).count();
            if running >= MAX_RUNNING {
                let text = format!("{MAX_RUNNING} deployments in progress, which is the limit");
                return Err(Fault::new(FaultCode::Refused, text));
            }
            by_id.insert(id, Arc::clone(&deployment));
        }
        let work = work(Arc::clone(&deployment));
        let ending = OutcomeGuard(Arc::clone(&deployment));
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { ending.0.finish(work.await) });
        Ok((id, CallerGuard(Some(deployment))))
    }

    fn get(&self, id: u64) -> Result<Arc<Deployment>, Fault> {
        let found = self.by_id.lock().get(&id).cloned();
        found.ok_or_else(|| {
            let text = format!("no current or recent deployment {id}");
            Fault::new(FaultCode::UnknownTarget, text)
        })
    }

    /// Waits up to `wait` for the outcome of a deployment. Returns its row or its fault if it is
    /// over, else its progress.
    pub(super) async fn watch(&self, id: u64, wait: Duration) -> DeploymentOutcome {
        let deployment = self.get(id)?;
        let finished = timeout(wait.min(MAX_WAIT), deployment.finished());
        match finished.await {
            Ok(outcome) => Ok(json!({ "id": id, "over": true, "row": outcome? })),
            Err(_) => Ok(deployment.progress(id)),
        }
    }

    /// Cancels a deployment unless it has begun to start.
    pub(super) fn cancel(&self, id: u64) -> DeploymentOutcome {
        let deployment = self.get(id)?;
        let cancelled = deployment.cancel(CancelReason::Requested);
        Ok(json!({ "id": id, "cancelled": cancelled, "over": deployment.is_over() }))
    }
}

/// Maximum time of one wait.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// A guard that gives a deployment an outcome, however its task ends.
struct OutcomeGuard(Arc<Deployment>);

impl Drop for OutcomeGuard {
    fn drop(&mut self) {
        self.0.finish(Err(lost_outcome()));
    }
}

/// A handle of a waiting caller: dropping it cancels the deployment.
pub(super) struct CallerGuard(Option<Arc<Deployment>>);

impl CallerGuard {
    pub(super) async fn finished(self) -> DeploymentOutcome {
        match &self.0 {
            Some(deployment) => deployment.finished().await,
            None => Err(lost_outcome()),
        }
    }

    /// Detaches the deployment, which continues and can be found by its number.
    pub(super) fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        if let Some(deployment) = &self.0 {
            deployment.cancel(CancelReason::Requested);
        }
    }
}
