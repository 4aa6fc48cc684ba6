use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;

use super::{FlowError, ReceiverCredit, SendDecision, SenderCredit, SlowReader};

/// A packet from the source to the reader.
#[derive(Debug)]
enum Packet {
    Item { missed: u64, number: u64 },
}

/// Both halves, with a connection of arbitrary delay between them.
struct Line {
    outlet: SenderCredit,
    inlet: ReceiverCredit,
    items: VecDeque<Packet>,
    grants: VecDeque<u32>,
    arrived: VecDeque<u64>,
    /// The number of the first item that the reader has not heard of yet.
    expected: u64,
    number: u64,
}

impl Line {
    fn new(lag: SlowReader, window: u32, limit: u32) -> Self {
        let mut inlet = ReceiverCredit::new(window);
        let first = inlet.take_grant();
        Self {
            outlet: SenderCredit::new(lag, limit),
            inlet,
            items: VecDeque::new(),
            grants: VecDeque::from([first]),
            arrived: VecDeque::new(),
            expected: 0,
            number: 0,
        }
    }

    fn send(&mut self) {
        let number = self.number;
        match self.outlet.decide() {
            SendDecision::Send { missed } => {
                self.items.push_back(Packet::Item { missed, number });
                self.number += 1;
            }
            SendDecision::Miss => self.number += 1,
            SendDecision::Wait | SendDecision::Disconnect => {}
        }
    }

    fn carry_item(&mut self) {
        if let Some(Packet::Item { missed, number }) = self.items.pop_front() {
            self.inlet.on_item().expect("there was credit");
            self.expected += missed;
            assert_eq!(
                number, self.expected,
                "in order, none lost untold, none twice"
            );
            self.expected += 1;
            self.arrived.push_back(number);
        }
    }

    fn take(&mut self) {
        if self.arrived.pop_front().is_some() {
            self.inlet.on_taken();
        }
        let credit = self.inlet.take_grant();
        if credit > 0 {
            self.grants.push_back(credit);
        }
    }

    fn carry_grant(&mut self) {
        if let Some(credit) = self.grants.pop_front() {
            self.outlet.grant(credit).expect("within the limit");
        }
    }
}

proptest! {
    #[test]
    fn both_halves_agree_under_any_delay(
        lag in select(vec![SlowReader::Wait, SlowReader::Miss]),
        window in 1_u32..20,
        steps in vec(any::<u8>(), 1..400),
    ) {
        let mut line = Line::new(lag, window, window);
        for step in steps {
            match step % 4 {
                0 => line.send(),
                1 => line.carry_item(),
                2 => line.take(),
                _ => line.carry_grant(),
            }
            let kept = line.items.len() + line.arrived.len();
            prop_assert!(kept <= window as usize, "{kept} of {window}");
        }
        // All packets under way arrive in the end, and the stream goes on.
        for _ in 0..100 {
            line.carry_grant();
            line.carry_item();
            line.take();
        }
        let before = line.number;
        line.send();
        line.carry_item();
        prop_assert_eq!(line.number, before + 1);
        prop_assert_eq!(line.expected, line.number, "all are accounted for");
    }

    #[test]
    fn a_window_may_change_at_any_time(
        windows in vec((1_u32..20, 0_u8..10), 1..30),
    ) {
        let mut line = Line::new(SlowReader::Wait, 10, 20);
        for (window, rounds) in windows {
            line.inlet.resize(window);
            for _ in 0..rounds {
                line.send();
                line.carry_item();
                line.take();
                line.carry_grant();
            }
            let kept = line.items.len() + line.arrived.len();
            prop_assert!(kept <= 20);
        }
        let before = line.number;
        for _ in 0..100 {
            line.send();
            line.carry_item();
            line.take();
            line.carry_grant();
        }
        prop_assert!(line.number >= before + 50, "it never stalls");
    }
}

#[test]
fn credit_is_refilled_at_half_window() {
    let mut inlet = ReceiverCredit::new(8);
    assert_eq!(inlet.take_grant(), 8);
    for _ in 0..8 {
        inlet.on_item().expect("there is credit");
    }
    let mut grants = Vec::new();
    for _ in 0..8 {
        inlet.on_taken();
        grants.push(inlet.take_grant());
    }
    assert_eq!(grants, [0, 0, 0, 4, 0, 0, 0, 4]);
}

#[test]
fn excess_credit_is_rejected() {
    let mut outlet = SenderCredit::new(SlowReader::Wait, 10);
    assert_eq!(outlet.grant(10), Ok(()));
    let error = FlowError::TooMuchCredit {
        credit: 11,
        limit: 10,
    };
    assert_eq!(outlet.grant(1), Err(error));
    assert_eq!(outlet.grant(u32::MAX).map_err(|error| error.to_string()), {
        let text = "credit 4294967295 exceeds the limit of 10";
        Err(text.to_owned())
    });
    assert_eq!(outlet.credit(), 10);
}

#[test]
fn item_without_credit_is_rejected() {
    let mut inlet = ReceiverCredit::new(0);
    assert_eq!((inlet.take_grant(), inlet.window()), (1, 1));
    assert_eq!(inlet.on_item(), Ok(()));
    assert_eq!(inlet.on_item(), Err(FlowError::NoCredit));
}

#[test]
fn slow_reader_rule_is_applied() {
    let offer = |lag| SenderCredit::new(lag, 1).decide();
    assert_eq!(offer(SlowReader::Wait), SendDecision::Wait);
    assert_eq!(offer(SlowReader::Miss), SendDecision::Miss);
    assert_eq!(offer(SlowReader::Disconnect), SendDecision::Disconnect);
}
