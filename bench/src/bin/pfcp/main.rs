//! The codec beside `rs-pfcp`: the same bytes, the same reads, and results folded into the same
//! checksum.

mod codec;
mod message;
mod rs_pfcp_codec;
mod strowger_codec;

use std::hint::black_box;
use std::time::{Duration, Instant};

use strowger_bench::{Case, CountingAllocator, Pick, Plan, Row, Sample, allocations};

use crate::codec::Codec;
use crate::rs_pfcp_codec::RsPfcp;
use crate::strowger_codec::Strowger;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Numbers of pairs of rules in a Session Establishment Request.
const SIZES: [usize; 4] = [1, 5, 10, 50];

fn main() {
    let plan = Plan::from_args(&["pfcp"], Pick::Least);
    refuses_what_lacks_a_mandatory_element::<Strowger>();
    refuses_what_lacks_a_mandatory_element::<RsPfcp>();
    let mut cases = Vec::new();
    add::<Strowger>(&mut cases, &plan);
    add::<RsPfcp>(&mut cases, &plan);
    cases.sort_by_key(|(order, _)| *order);
    plan.run(cases.into_iter().map(|(_, case)| case).collect());
}

/// Speed counts for nothing without checks: the same binary shows that the codecs make them.
fn refuses_what_lacks_a_mandatory_element<C: Codec>() {
    for octets in message::lacking_mandatory() {
        assert!(
            C::read(&mut C::Scratch::default(), &octets).is_none(),
            "{} takes {octets:02x?}",
            C::NAME
        );
        assert!(
            C::decode(&octets).is_none(),
            "{} takes {octets:02x?}",
            C::NAME
        );
    }
}

fn add<C: Codec>(cases: &mut Vec<(usize, Case)>, plan: &Plan) {
    let mut order = 0;
    for n in SIZES {
        let variants = || {
            let one = |variant| {
                let octets = message::establishment(n, variant);
                (octets, message::checksum(n, variant))
            };
            Variants::new((0..message::VARIANTS).map(one).collect())
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
        add("decode_typed", reading::<C>(variants()));
        add("decode_fresh", reading_afresh::<C>(variants()));
        add("decode_owned", decoding::<C>(variants()));
        let octets = message::establishment(n, 0);
        add("encode", encoding(C::values(n), C::encode, octets));
    }
    let octets = message::heartbeat();
    let mut add = |id: &str, mut work: Work| {
        count::<C>(plan, id, &mut work);
        cases.push((
            order,
            Case::new(id, C::NAME, move |times| sample(&mut work, times)),
        ));
        order += 1;
    };
    add("decode_heartbeat", heartbeat_reading::<C>(octets.clone()));
    add(
        "encode_heartbeat",
        encoding(C::heartbeat_values(), C::encode_heartbeat, octets),
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
struct Variants {
    all: Vec<(Vec<u8>, u64)>,
    at: usize,
}

impl Variants {
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

fn reading<C: Codec>(mut variants: Variants) -> Work {
    let mut scratch = C::Scratch::default();
    Box::new(move |times| {
        let mut last = Some(variants.expected());
        let time = timed(times, || last = C::read(&mut scratch, variants.next()));
        let expected = Some(variants.expected());
        assert_eq!(last, expected, "{} reads every leaf", C::NAME);
        time
    })
}

fn reading_afresh<C: Codec>(mut variants: Variants) -> Work {
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

fn decoding<C: Codec>(mut variants: Variants) -> Work {
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

fn encoding<V: 'static>(values: V, encode: fn(&V, &mut Vec<u8>), expected: Vec<u8>) -> Work {
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

fn heartbeat_reading<C: Codec>(octets: Vec<u8>) -> Work {
    let mut scratch = C::Scratch::default();
    Box::new(move |times| {
        let mut last = Some(message::RECOVERY);
        let time = timed(times, || {
            last = C::read_heartbeat(&mut scratch, black_box(&octets))
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
