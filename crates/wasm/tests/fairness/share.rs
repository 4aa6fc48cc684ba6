//! Shares of a processor, and weights.

use std::time::{Duration, Instant};

use strowger_wasm::CallError;
use strowger_wasm::host::OverBudgetAction;

use crate::hogs::{hog, hogs, spinner};
use crate::kit::{Guest, limits};
use crate::node::{Node, run};

#[test]
fn components_share_guest_threads_by_weight() {
    run(async {
        let mut limits = limits();
        limits.threads = 1;
        let node = Node::start(limits).await;
        let mut pairs = Vec::new();
        // Two of each: between two calls of one component, another of its weight runs.
        for (name, weight) in [
            ("heavy-1", 400),
            ("heavy-2", 400),
            ("light-1", 100),
            ("light-2", 100),
        ] {
            let more = format!("[grant]\nsend = [{name:?}]\n[limits]\nweight = {weight}");
            pairs.push(node.deploy(&hog(name, 20_000_000), name, &more).await);
        }
        for one in &pairs {
            one.tell("x");
        }
        // Both compute for a while before the measurement.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let used = || {
            pairs
                .iter()
                .map(|one| node.info(one).cpu)
                .collect::<Vec<_>>()
        };
        let before = used();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let after = used();
        let sum = |of: [usize; 2]| {
            of.map(|n| (after[n] - before[n]).as_secs_f64())
                .iter()
                .sum()
        };
        let (heavy, light): (f64, f64) = (sum([0, 1]), sum([2, 3]));
        let ratio = heavy / light.max(1e-9);
        assert!((2.0..8.0).contains(&ratio), "{heavy} to {light}: {ratio}");
        node.end().await;
    });
}

#[test]
fn components_without_a_weight_share_equally() {
    run(async {
        let mut limits = limits();
        limits.threads = 1;
        let node = Node::start(limits).await;
        let hogs = hogs(&node, 5, 5_000_000, "60s").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let used: Vec<_> = hogs.iter().map(|one| node.info(one).cpu).collect();
        let most = used.iter().max().expect("there are some");
        let least = used.iter().min().expect("there are some");
        assert!(*most < *least * 3, "{used:?}");
        node.end().await;
    });
}

#[test]
fn cpu_share_is_enforced_and_counted() {
    run(async {
        let node = Node::start(limits()).await;
        let name = "hog";
        let more = format!("[grant]\nsend = [{name:?}]\n[limits]\ncpu = \"20%\"");
        let throttled = node.deploy(&hog(name, 2_000_000), name, &more).await;
        let benign = node
            .deploy(&Guest::new(), "benign", "[limits]\ncpu = \"20%\"")
            .await;
        throttled.tell("x");
        // Its window is used up before the measurement.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (before, began) = (node.info(&throttled).cpu, Instant::now());
        tokio::time::sleep(Duration::from_secs(2)).await;
        let info = node.info(&throttled);
        let share = (info.cpu - before).as_secs_f64() / began.elapsed().as_secs_f64();
        assert!(share < 0.4, "{share}");
        assert!(info.calls > 10, "it goes on: {info:?}");
        assert!(
            info.throttled > 0 && info.delayed > Duration::ZERO,
            "{info:?}"
        );
        assert!(node.is_alive(&throttled));
        benign.ask("x").await.expect("it answers");
        let info = node.info(&benign);
        assert_eq!((info.throttled, info.delayed), (0, Duration::ZERO));
        node.end().await;
    });
}

#[test]
fn component_over_its_share_is_quarantined_if_configured() {
    run(async {
        let mut limits = limits();
        limits.excess = OverBudgetAction::Quarantine;
        limits.patience = Duration::from_millis(500);
        let node = Node::start(limits).await;
        let more = "[grant]\nsend = [\"hog\"]\n[limits]\ncpu = \"20%\"\n\
                    [restart]\nintensity = 1000000";
        let greedy = node.deploy(&hog("hog", 2_000_000), "hog", more).await;
        let more = "[limits]\ncpu = \"20%\"";
        let modest = node.deploy(&spinner(200_000), "modest", more).await;
        greedy.tell("x");
        let began = Instant::now();
        while node.is_alive(&greedy) {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "it is still there"
            );
            modest.ask("x").await.expect("it answers");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let info = node.info(&greedy);
        let fault = info.fault.clone().expect("it says why");
        assert_eq!(fault.to_string(), "handle: exceeded limits.cpu");
        assert!(
            info.incarnations < 10,
            "it is not started again and again: {info:?}"
        );
        assert!(node.is_alive(&modest));
        let answer = modest.ask("x").await;
        assert!(!matches!(answer, Err(CallError::Fault(_))), "{answer:?}");
        node.end().await;
    });
}
