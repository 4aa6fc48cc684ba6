//! `strowger logs`.

use crate::peer::Peer;
use crate::running::Running;

#[test]
fn log_of_an_actor_is_read_over_the_control_socket() {
    let node = Running::start("");
    let _peer = Peer::associated(62, &node.n4);
    let ran = node.ask(["logs", "/node/n4", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines = ran.objects();
    let told = |line: &&serde_json::Value| line["text"].as_str().is_some_and(is_about_the_actor);
    let line = lines.iter().find(told).expect("the association is logged");
    assert_eq!(line["path"], "/node/n4");
    assert_eq!(line["level"], "info");
    let last = lines.last().expect("there is one");
    assert_eq!((&last["end"], &last["lost"]), (&true.into(), &0.into()));
    let ran = node.ask(["logs", "/node/n4", "--level", "error", "--json"]);
    assert_eq!(ran.objects().len(), 1, "{}", ran.out);
}

fn is_about_the_actor(text: &str) -> bool {
    text.contains("associated") && text.contains("127.0.0.62")
}

#[test]
fn unknown_level_is_an_input_error() {
    let ran = crate::binary::strowger(["logs", "--level", "loud"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
}
