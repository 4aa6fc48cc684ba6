//! The codec beside `rs-pfcp`: the same bytes, the same reads, and results folded into the same
//! checksum.

mod codec;
mod message;
mod rs_pfcp_codec;
mod strowger_codec;

use std::hint::black_box;
use std::time::{Duration, Instant};

use strowger_bench::{Case, CountingAllocator, Estimate, Plan, Row, Sample, allocations};

use crate::codec::Codec;
use crate::rs_pfcp_codec::RsPfcp;
use crate::strowger_codec::Strowger;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Numbers of pairs of rules in a Session Establishment Request.
const SIZES: [usize; 4] = [1, 5, 10, 50];

fn main() {
    let plan = Plan::from_args(&["pfcp"], Estimate::Least);
    assert_refuses_missing_mandatory_elements::<Strowger>();
    assert_refuses_missing_mandatory_elements::<RsPfcp>();
    let mut cases = Vec::new();
    add::<Strowger>(&mut cases, &plan);
    add::<RsPfcp>(&mut cases, &plan);
    cases.sort_by_key(|(order, _)| *order);
    plan.run(cases.into_iter().map(|(_, case)| case).collect());
}

/// Speed counts for nothing without checks: the same binary shows that the codecs make them.
fn assert_refuses_missing_mandatory_elements<C: Codec>() {
    for bytes in message::without_mandatory_elements() {
        assert!(
            C::read(&mut C::Scratch::default(), &bytes).is_none(),
            "{} takes {bytes:02x?}",
            C::NAME
        );
        assert!(
            C::decode(&bytes).is_none(),
            "{} takes {bytes:02x?}",
            C::NAME
        );
    }
}

fn add<C: Codec>(cases: &mut Vec<(usize, Case)>, plan: &Plan) {
    let mut order = 0;
    for n in SIZES {
        let variants = || {
            let one = |variant| {
                let bytes = message::establishment(n, variant);
                (bytes, message::checksum(n, variant))
            };
            MessageVariants::new((0..message::VARIANTS).map(one).collect())
        };
        let mut add = |kind: &str, mut work: Work| {
            let id = format!("{kind}_{n}");
            count::<C>(plan, &id, &mut work);
            cases.push((
                order,
                Case::new(id, C::NAME, move |times| sample(&mut work, times)),
            ));
            order += 1;
        };
        add("decode_typed", read_work::<C>(variants()));
        add("decode_fresh", read_with_new_scratch_work::<C>(variants()));
        add("decode_owned", decode_work::<C>(variants()));
        let bytes = message::establishment(n, 0);
        add("encode", encode_work(C::values(n), C::encode, bytes));
    }
    let bytes = message::heartbeat();
    let mut add = |id: &str, mut work: Work| {
        count::<C>(plan, id, &mut work);
        cases.push((
            order,
            Case::new(id, C::NAME, move |times| sample(&mut work, times)),
        ));
        order += 1;
    };
    add("decode_heartbeat", read_heartbeat_work::<C>(bytes.clone()));
    add(
        "encode_heartbeat",
        encode_work(C::heartbeat_values(), C::encode_heartbeat, bytes),
    );
}

/// Does the work this number of times, then checks the last result; only the first part is timed.
type Work = Box<dyn FnMut(u64) -> Duration>;

/// Runs the work in chunks, each of which ends with a check.
fn sample(work: &mut Work, times: u64) -> Sample {
    const CHUNK: u64 = 64;
    let chunks = times.div_ceil(CHUNK);
    let time = (0..chunks).map(|_| work(CHUNK)).sum();
    Sample {
        time,
        done: chunks * CHUNK,
        checked: chunks,
    }
}

/// Prints the number of allocations of one operation, once its buffers have grown and it has seen
/// each of the messages.
fn count<C: Codec>(plan: &Plan, id: &str, work: &mut Work) {
    work(4 * u64::from(message::VARIANTS));
    let (_, none) = allocations(|| work(0));
    let (_, count) = allocations(|| work(1));
    plan.print(&Row {
        part: "pfcp",
        id: format!("{id}_allocs"),
        subject: C::NAME,
        value: Ok((count - none) as f64),
        unit: "allocations",
        iterations: 1,
        checked: 1,
        notes: Vec::new(),
    });
}

fn timed(times: u64, mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..times {
        work();
    }
    start.elapsed()
}

/// Messages that differ in their numbers, in turn, each with its checksum, so that a codec gains
/// nothing from having seen the same bytes before.
struct MessageVariants {
    all: Vec<(Vec<u8>, u64)>,
    at: usize,
}

impl MessageVariants {
    fn new(all: Vec<(Vec<u8>, u64)>) -> Self {
        Self { all, at: 0 }
    }

    fn next(&mut self) -> &[u8] {
        self.at = (self.at + 1) % self.all.len();
        black_box(&self.all[self.at].0)
    }

    /// Returns the checksum of the message that was returned last.
    fn expected(&self) -> u64 {
        self.all[self.at].1
    }
}

fn read_work<C: Codec>(mut variants: MessageVariants) -> Work {
    let mut scratch = C::Scratch::default();
    Box::new(move |times| {
        let mut last = Some(variants.expected());
        let time = timed(times, || last = C::read(&mut scratch, variants.next()));
        let expected = Some(variants.expected());
        assert_eq!(last, expected, "{} reads every leaf", C::NAME);
        time
    })
}

fn read_with_new_scratch_work<C: Codec>(mut variants: MessageVariants) -> Work {
    Box::new(move |times| {
        let mut last = Some(variants.expected());
        let time = timed(times, || {
            last = C::read(&mut C::Scratch::default(), variants.next());
        });
        let expected = Some(variants.expected());
        assert_eq!(last, expected, "{} reads every leaf", C::NAME);
        time
    })
}

fn decode_work<C: Codec>(mut variants: MessageVariants) -> Work {
    Box::new(move |times| {
        let mut last = None;
        let time = timed(times, || last = black_box(C::decode(variants.next())));
        if times > 0 {
            let sum = last.as_ref().map(C::fold);
            let expected = Some(variants.expected());
            assert_eq!(sum, expected, "{} decodes every leaf", C::NAME);
        }
        time
    })
}

fn encode_work<V: 'static>(values: V, encode: fn(&V, &mut Vec<u8>), expected: Vec<u8>) -> Work {
    let mut buffer = Vec::new();
    Box::new(move |times| {
        let time = timed(times, || {
            buffer.clear();
            encode(black_box(&values), &mut buffer);
            black_box(&buffer);
        });
        assert!(times == 0 || buffer == expected, "encoded {buffer:02x?}");
        time
    })
}

fn read_heartbeat_work<C: Codec>(bytes: Vec<u8>) -> Work {
    let mut scratch = C::Scratch::default();
    Box::new(move |times| {
        let mut last = Some(message::RECOVERY);
        let time = timed(times, || {
            last = C::read_heartbeat(&mut scratch, black_box(&bytes))
        });
        assert_eq!(
            last,
            Some(message::RECOVERY),
            "{} reads the time stamp",
            C::NAME
        );
        time
    })
}
