//! Descriptions of the parts and of their rows.

pub(super) const PREFACE: &str = "Written by `cargo xtask bench` from `performance.json`; figures \
                                  are never typed by hand. Read ratios rather than times: all \
                                  subjects of a row ran in turns, in one process, so that whatever \
                                  slowed the machine slowed all of them. How to run, read and \
                                  compare: [benchmarking](benchmarking.md).";

/// The parts: name, title, and description of the figures.
pub(super) const PARTS: &[(&str, &str, &str)] = &[
    (
        "runtime",
        "Runtime",
        "Counters that add numbers, on two workers; every subject runs the same work, and the \
         sums are compared. Five processes measure each row with workers that stay on a processor \
         of their own, and five with workers that the system places. In a process the subjects \
         take turns, in an order that moves on with every round and process. A figure is the \
         median of the processes with pinned workers; a ratio is taken within a process, and the \
         least and the most of the processes stand in brackets. What a row depends on stands \
         below it: how often a thread goes to sleep in an operation, and how many processors the \
         process has in use meanwhile. At one processor the work follows one thread, and no cache \
         line moves; at two it crosses over, and where threads sleep besides, the figure is that \
         of waking them. `tokio` is a task and a channel written by hand, without supervision, \
         names or deadlines; `actix` runs on two arbiters, actors and driver on the first. \
         Strowger runs as it comes: statistics, guards against panics, a supervisor, and a \
         deadline on every question. No peer has a deadline on a question here, and none but the \
         restart rows runs under supervision.",
    ),
    (
        "scale",
        "Many actors, growing load",
        "The rows that the plots are drawn from; two pinned workers, one subject after the other \
         at each point, the median of five processes. \
         ![Messages handled in a second, by number of actors](throughput.svg) \
         ![Latency of an answer under load, p50](latency-p50.svg) \
         ![Latency of an answer under load, p99](latency-p99.svg)",
    ),
    (
        "observe",
        "Watching",
        "What it costs to watch actors, in instructions of one message on one thread under \
         callgrind: the difference of two runs with different numbers of messages. `tell` is a \
         message to a mailbox of 1024, in batches of 512; `ask` is a question with its answer. \
         `cost_of_figures` is what the figures of every actor cost beside a build without them; \
         every other cost is beside the figures alone.",
    ),
    (
        "pfcp",
        "PFCP codec",
        "A Session Establishment Request with N Create PDR and N Create FAR (94, 302, 562 and 2642 \
         octets for N = 1, 5, 10 and 50), and a Heartbeat Request (16 octets). Sixteen messages of \
         a size, with other numbers in the same rules, are decoded in turn. Every leaf of every \
         rule is folded into a checksum that has to come out right; a message without a mandatory \
         element is refused by every subject in the same binary. What `strowger` reads is also \
         checked for multiplicity, conditions and the N4 interface, with an index that has seen \
         messages of the same shape before; `decode_fresh` has seen none. Each figure is the \
         least of interleaved rounds on one thread, in nanoseconds for one message.",
    ),
    (
        "n4",
        "N4 node",
        "A node in the UPF role and a load in the SMF role, each a process, on the same cores \
         over loopback. A session has two PDRs and two FARs. Every answer is an acceptance, and \
         the node counts what the load counts. Each figure is the median of rounds with new \
         processes. \
         ![Cost of a request, by number of live sessions](sessions.svg)",
    ),
    (
        "wasm",
        "Components",
        "WebAssembly in every figure: the fixtures `echo`, `relay` and `counter` of \
         `fixtures/components`, whose hashes are in `SHA256SUMS`. Messages have 64 octets. \
         `native` are the same actors without WebAssembly. `wasmtime` is the plain call with 64 \
         octets, or the plain instantiation with `init`, that the row is made of: without an \
         actor, a limit or a deadline. `document` is what a benchmark guide says of a row of \
         this name; it loaded no WebAssembly. Each figure is the median of interleaved rounds.",
    ),
    (
        "messages",
        "Messages",
        "Actors in one process of Node, and of Bun where the id ends in `_bun`; every subject \
         counts what it handled, and the counts are compared. `floor` is a Map of functions and \
         a microtask for each message, without mailboxes, deadlines or failures. `client_...` is \
         the client of a node on the same machine over a unix socket, beside a process that \
         gives octets back on one (`socket`), in TypeScript, and in Rust where the id ends in \
         `_rust`. Each figure is the median of rounds in which the \
         subjects take turns.",
    ),
    (
        "tools",
        "Tools",
        "Files, code, programs and streams through their actors; files and code on one thread, \
         `program_rate`, streams and `mcp_http_64` on two. `std` opens by path, \
         without cutting off what is there, and checks nothing; `cap-std` resolves below the same \
         kind of handle as the actor does. `rquickjs` is the engine of the sandbox as a library, \
         without WebAssembly, limits or isolation; `rmcp` the kit of the protocol of agents over \
         plain hyper, without a token, limits or actors. Each call is about another file or says \
         something else than the one before, and what came or was written is compared. Each \
         figure is the median of rounds in which the subjects take turns.",
    ),
    (
        "stress",
        "All tools at once",
        "Files of 10 000 octets, code in eight realms that are kept, eight programs, and pieces of \
         4096 octets to a reader, in turns, on two workers. `stress` is a thousand calls in \
         batches of fifty that are made at once, again and again; `open_loop` is 2000 calls a \
         second for a minute, on a schedule that no answer delays, each timed from when it was to \
         be made. Every answer is compared with what it has to be.",
    ),
];

/// Descriptions of the rows.
pub(super) const IDS: &[(&str, &str)] = &[
    (
        "tell",
        "one task sends numbers to one actor, until it handled the last one",
    ),
    ("tell_4_to_1", "the same with four sending tasks"),
    (
        "ask",
        "one task asks an actor that has nothing else to do and waits for the answer, one \
         question at a time",
    ),
    (
        "ask_busy",
        "the same, while another task tells that actor bursts of sixteen numbers and waits until \
         each burst is handled; neither task gives way by itself, so a runtime whose answers come \
         at once has to see to it that the other task runs",
    ),
    (
        "ask_from_actor",
        "an actor asks another within a handler, one question at a time; by hand, a task asks a \
         task. `strowger` arms a deadline for each question and looks for rings of questions",
    ),
    (
        "scatter_8",
        "one task asks eight actors at once, each of which computes for 50 us, and waits for all \
         answers. It is work of processors: 200 us is what two of them need at best, 400 us is one \
         after the other",
    ),
    (
        "timeout_overrun",
        "a task asks an actor that computes for 10 us, again and again, within \
         `tokio::time::timeout` of 20 ms: how much later than that it ends; whoever has not ended \
         after two seconds gives up by itself. Timers of tokio count milliseconds",
    ),
    (
        "neighbour_p99",
        "so many actors for each worker compute for 100 us at each message and tell themselves \
         the next one; a task on the same runtime sleeps for a millisecond, again and again: how \
         much later it wakes, one of a hundred times. Two workers are then never idle; actors that \
         let nobody else run end by themselves after a second",
    ),
    (
        "neighbour_udp_p99",
        "the same; a task reads the datagram that a thread outside sends every millisecond, and \
         sends it back: the time from its sending to its being read",
    ),
    (
        "ask_other_worker",
        "the same as `ask`, of an actor on another worker: asking task and actor run on two \
         runtimes of one worker each, so every question and every answer crosses over. With \
         `strowger` the one who asks looks for the answer for up to 4 us before it sleeps, and the \
         actor's thread for the next question for up to 80 us; the others sleep at once, and every \
         wake-up goes through the kernel",
    ),
    ("file_read_100", "a file of 100 octets is read whole"),
    ("file_read_10k", "one of 10 000 octets"),
    ("file_read_100k", "one of 100 000 octets"),
    (
        "file_write_100",
        "a file is written over in place with 100 octets",
    ),
    ("file_write_10k", "with 10 000 octets"),
    ("file_write_100k", "with 100 000 octets"),
    (
        "file_list_100",
        "a directory of a hundred entries is listed by name",
    ),
    ("file_delete", "a file is removed"),
    (
        "file_write_atomic_10k",
        "a file of 10 000 octets is put in the place of another",
    ),
    (
        "file_read_10_at_once",
        "ten files of 10 000 octets are asked for at once; all of them",
    ),
    (
        "file_first_write_200k",
        "a root of 200 000 files that have 4 GB together: from before its actor is started until \
         its first write is answered",
    ),
    (
        "file_search_1g",
        "1 GiB of text in a thousand files is searched for lines that match; `grep -rn` does the \
         same on the same files in the same run",
    ),
    (
        "file_search_1g_memory",
        "the most memory that a process holds which does that search and nothing else",
    ),
    (
        "code_warm",
        "a short expression, another one each time, in a realm or context that is kept",
    ),
    (
        "code_cold",
        "the same, each in a realm, or engine and context, of its own",
    ),
    (
        "code_kill_over_limit_p50",
        "code without an end that may compute for 20 ms: how much later it was ended and \
         answered; half take less",
    ),
    (
        "code_kill_over_limit_p99",
        "the same; one of a hundred takes longer",
    ),
    (
        "program_ask",
        "a program that is resident is asked, one question at a time",
    ),
    (
        "program_rate",
        "64 resident programs are asked at once, each for the next answer as soon as it has one",
    ),
    (
        "mcp_http_1",
        "a call of a tool over HTTP on a connection that is kept, one at a time, client included",
    ),
    (
        "mcp_http_64",
        "64 calls of a tool are under way over HTTP, each on a connection that is kept; the time \
         of one of them, client included",
    ),
    (
        "mcp_http_64_p50",
        "half of those 64 wait less than this for an answer",
    ),
    (
        "mcp_http_64_p99",
        "all but one of a hundred of them wait less than this",
    ),
    (
        "stress_rate",
        "calls a second, over all rounds of a thousand",
    ),
    (
        "stress_growth",
        "by how much the process has grown from the first round to the last",
    ),
    (
        "stream_chunk",
        "a piece of 64 KiB through a stream with one reader, as fast as it reads",
    ),
    (
        "stream_chunk_p50_100_readers",
        "how long a piece of 64 KiB takes to each of a hundred readers, one every 2 ms",
    ),
    ("stream_chunk_p95_100_readers", "the same"),
    ("stream_chunk_p99_100_readers", "the same"),
    ("hop", "two actors pass a token to and fro"),
    ("ring_hop", "a thousand actors pass a token round"),
    (
        "fan_out_10",
        "one actor passes each number on to ten; a delivery, until the last one was handled",
    ),
    ("fan_out_100", "the same to a hundred"),
    (
        "spawn_until_answered",
        "an actor is spawned and answers its first question; ending it is not timed",
    ),
    (
        "spawn_and_stop",
        "ten thousand actors are spawned, then stopped, each waited for; one actor of them",
    ),
    (
        "restart_err",
        "a handler returns an error, its supervisor starts a successor, which answers with fresh \
         state; by hand, a task that awaits its child and spawns it again on the same channel",
    ),
    ("restart_panic", "the same when the handler panics"),
    (
        "heap_per_idle_actor",
        "bytes in use for each of ten thousand actors that answered once and now wait, as asked \
         for from the allocator",
    ),
    (
        "live_resident",
        "so many actors live, each of which has answered: by how much the process has grown",
    ),
    ("live_heap", "the same: what they hold of the heap, in all"),
    (
        "live_spawned",
        "the same: the time until all were spawned and have answered",
    ),
    (
        "throughput",
        "four tasks tell numbers in turn to so many actors, until the last one is handled; one \
         message",
    ),
    (
        "latency_p50",
        "a hundred actors with mailboxes of 1024 are told so many numbers in a second, in a burst \
         every millisecond; half of the answers to questions asked meanwhile take less",
    ),
    (
        "latency_p99",
        "the same; one answer of a hundred takes longer",
    ),
    (
        "without_figures",
        "built with `--cfg strowger_uncounted`: no figures, no traces",
    ),
    ("with_figures", "as it comes, and nobody watches"),
    (
        "with_recorder",
        "a recorder of the `metrics` facade is installed",
    ),
    (
        "with_subscriber",
        "a `tracing` subscriber takes warnings, as in a node",
    ),
    ("with_events", "somebody is subscribed to events"),
    (
        "with_top",
        "`top` is attached: a reading of a hundred actors for each 100 000 messages, as much as \
         one of a thousand actors a second at a million messages a second",
    ),
    ("with_trace", "somebody traces another actor"),
    (
        "decode_typed",
        "octets to checked, typed reads of every leaf, the cheapest way there is",
    ),
    (
        "decode_fresh",
        "the same with an index that has seen no message, made for each",
    ),
    ("decode_owned", "octets to owned, typed values"),
    (
        "encode",
        "typed values to octets in a buffer that is used again",
    ),
    ("decode_heartbeat", "octets to the Recovery Time Stamp"),
    (
        "encode_heartbeat",
        "a time to octets in a buffer that is used again",
    ),
    (
        "establish_rate",
        "sessions established with 32 requests in flight, kept in memory",
    ),
    (
        "establish_rate_stored",
        "the same with a store, each written before it is answered so that it outlives `kill -9`",
    ),
    (
        "establish_rate_disk",
        "the same, each on the disk before it is answered",
    ),
    (
        "establish_node_processor",
        "processor time that the node spends on one of them; `_stored` and `_disk` as above",
    ),
    (
        "establish_load_processor",
        "processor time that the load spends on one of them; `_stored` and `_disk` as above",
    ),
    (
        "p50_at_10k",
        "10 000 establishments a second on a schedule that no answer delays; from the time at \
         which a request was to be sent, half of the answers take less",
    ),
    (
        "p99_at_10k",
        "the same; one answer of a hundred takes longer",
    ),
    (
        "restart_panic_p50",
        "the actor of a session panics, and is asked for a modification that names one of its \
         PDRs, until that is accepted; others are served meanwhile; half take less",
    ),
    (
        "restart_panic_p99",
        "the same; one of a hundred takes longer",
    ),
    (
        "recovery_100k",
        "from the start of a process with 100 000 stored sessions, whose predecessor was killed \
         with -9, to the answer to a heartbeat",
    ),
    (
        "recovery_100k_usable",
        "the same, until a thousand sessions from all over the store have accepted a modification",
    ),
    (
        "turnover",
        "with so many live sessions: a request, of which one half establish and one half delete, \
         32 in flight",
    ),
    (
        "resident",
        "resident memory of the node for each of so many live sessions, without that of as many \
         kept answers as there may be",
    ),
    (
        "bytes_per_session",
        "the same for each of a million live sessions",
    ),
];

/// Descriptions of the rows of the part `wasm`.
pub(super) const COMPONENTS: &[(&str, &str)] = &[
    (
        "routed_and_handled",
        "messages told to one component, until it handled the last one; one message",
    ),
    (
        "request_response",
        "a component asks another with `rpc.request`, again and again; one question with its \
         answer",
    ),
    (
        "instantiate",
        "an actor is spawned until it has started: Store, instance, `init`",
    ),
    ("first_message", "the same, until its first answer is there"),
    ("lifecycle", "the same, until it has been stopped in order"),
    (
        "restart_after_trap",
        "a message makes it panic; until its next life, with the state that it kept, has answered",
    ),
    (
        "upgrade_pause",
        "another version takes its place, with its state; the time in which messages wait",
    ),
    (
        "fan_out_100",
        "one message to a topic with a hundred components, until all have handled it; the plain \
         calls are a hundred",
    ),
    (
        "sustained",
        "a component for each processor is told messages for as long as the row takes, one call \
         for each message; all of them together",
    ),
    (
        "sustained_batched",
        "the same with calls for up to 64 messages",
    ),
    (
        "rss_per_instance",
        "by how much the process grows with each component that has answered once",
    ),
    (
        "neighbour_p99_alone",
        "how long a native actor takes to answer a task, at the 99th percentile; no component is \
         there",
    ),
    (
        "neighbour_p99_hogs_1",
        "the same beside a component for each processor that spins 200 000 times a message and \
         sends itself the next one",
    ),
    (
        "neighbour_p99_hogs_10",
        "the same beside ten of these for each processor",
    ),
];

/// Descriptions of the rows of the part `messages`.
pub(super) const MESSAGES: &[(&str, &str)] = &[
    ("create_tell", "an envelope of a tell is made"),
    (
        "create_ask",
        "an envelope of an ask is made, with its correlation",
    ),
    (
        "address",
        "an address is made of a path, and taken apart again",
    ),
    (
        "tell",
        "a message is queued; it is handled between the rounds, which is not timed",
    ),
    (
        "tell_handled",
        "bursts of 512 are told and handled; one message",
    ),
    (
        "ask",
        "an actor that has nothing else to do is asked, one question at a time",
    ),
    ("ask_p99", "the same; one answer of a hundred takes longer"),
    ("ask_100_each", "a hundred questions at once; one of them"),
    ("ring_hop", "ten actors pass a token round"),
    (
        "fan_out_10",
        "ten actors are told, until the last one has handled",
    ),
    (
        "batch_10k",
        "10 000 questions, a hundred at a time; all of them together",
    ),
    (
        "create_metadata",
        "an envelope of a tell with metadata is made",
    ),
    ("message_id", "an id of a message is made"),
    ("correlation_id", "an id of an exchange is made"),
    ("create_response", "an answer to an envelope is made"),
    (
        "create_error_response",
        "an answer is made that says why there is none",
    ),
    ("create_100", "a hundred envelopes are made; all of them"),
    ("create_1k", "a thousand envelopes are made; all of them"),
    (
        "route_tell",
        "an envelope is made and queued by its address; `floor` has a Map of functions",
    ),
    (
        "route_ask_echo",
        "an envelope is made and routed, and the answer comes back in one",
    ),
    (
        "route_ask_noop",
        "the same to a program that answers with nothing",
    ),
    (
        "route_ask_compute",
        "the same to a program that adds ten numbers",
    ),
    (
        "route_10_sequential",
        "ten of `route_ask_echo`, one after the other; all of them",
    ),
    ("route_10_concurrent", "the same ten at once"),
    (
        "tells_10",
        "an actor is told ten times and asked once before and after; all of it",
    ),
    ("tells_100", "the same with a hundred tells"),
    ("asks_10", "ten questions at once; all of them"),
    ("asks_100", "a hundred questions at once; all of them"),
    (
        "mixed_100",
        "fifty tells, and fifty questions at once; all of them",
    ),
    (
        "sequence_1k",
        "a thousand questions, one after the other; all of them",
    ),
    (
        "batch_1k",
        "a thousand questions, a hundred at a time; all of them",
    ),
    ("chain_10", "a message is passed on by ten actors"),
    (
        "aggregate_100",
        "ten actors send ten messages each to one, until it has handled the last",
    ),
    (
        "client_ask",
        "an actor in a node is asked, one question at a time",
    ),
    (
        "client_ask_p99",
        "the same; one answer of a hundred takes longer",
    ),
    (
        "client_ask_pipelined",
        "a thousand questions at once to an actor in a node; one of them",
    ),
    (
        "client_resident",
        "by how much a node has grown for each of a thousand clients that asked once and stay",
    ),
    (
        "owner_ask_1000_strangers",
        "connecting to the owner's socket and asking, at the 99th percentile, while a thousand \
         clients without a token hold the door over TCP and come again when they are turned out",
    ),
    (
        "idle_actor",
        "resident memory of each of 100 000 actors that answered once and now wait, beside as many",
    ),
    (
        "queued_message",
        "resident memory of each of 100 000 messages that wait in one mailbox, beside as many",
    ),
    (
        "resident_10k",
        "resident memory of a process that has handled 10 000 questions, in batches of a hundred",
    ),
];
