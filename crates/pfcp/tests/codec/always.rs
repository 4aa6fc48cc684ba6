//! What an owned value has in every case, by its type: all that every interface asks for, and
//! nothing else.

use strowger_pfcp::ie::descriptor::{Descriptor, Group, Member, Presence};
use strowger_pfcp::{ErrorKind, IeType, Interfaces, Message, MessageType};

use crate::octets::tlv;
use crate::values::{framed, groups, zeros};

/// The least that a member may be.
fn least(member: &Member) -> Vec<u8> {
    let value = match member.what {
        Descriptor::Leaf(_) => zeros(member.ie.0),
        Descriptor::Group(inner) => body(inner, &[], None),
    };
    tlv(member.ie.0, &value)
}

/// The mandatory members of a table, the group that the way leads to, and none of the type that is
/// left out of it.
fn body(table: &Group, way: &[IeType], without: Option<IeType>) -> Vec<u8> {
    let members = table.members.iter();
    let members = members.filter_map(|member| match (way.split_first(), member.what) {
        (Some((next, way)), Descriptor::Group(inner)) if *next == member.ie => {
            Some(tlv(member.ie.0, &body(inner, way, without)))
        }
        (None, _) if without == Some(member.ie) => None,
        _ => (member.presence == Presence::Mandatory).then(|| least(member)),
    });
    members.flatten().collect()
}

/// Members that a value has in any case though other members of the table may stand on more
/// interfaces: the name of a rule, the gate of a QER, and where a FAR forwards to.
const NO_VALUE_WITHOUT: [(&str, IeType); 9] = [
    ("7.5.2.3-2", IeType::DESTINATION_INTERFACE),
    ("7.5.2.5-1", IeType::QER_ID),
    ("7.5.2.5-1", IeType::GATE_STATUS),
    ("7.5.2.6-1", IeType::BAR_ID),
    ("7.5.4.4-1", IeType::URR_ID),
    ("7.5.4.5-1", IeType::QER_ID),
    ("7.5.4.11-1", IeType::BAR_ID),
    ("7.5.5.5-1", IeType::PDR_ID),
    ("7.5.9.2-1", IeType::BAR_ID),
];

/// Whether every interface that has anything of the table asks for one of the member.
fn is_always(table: &Group, member: &Member) -> bool {
    let members = table.members.iter();
    let all = members.fold(Interfaces::NONE, |all, member| all.with(member.on));
    member.presence == Presence::Mandatory && !member.many && member.on == all
}

#[test]
fn owned_values_lack_nothing_that_every_interface_asks_for() {
    let messages = MessageType::ALL.iter().filter_map(|message| {
        let table = message.table()?;
        Some((*message, Vec::new(), table))
    });
    let groups = groups().into_iter().filter_map(|(_, (message, way))| {
        let table = way.iter().try_fold(message.table()?, |table, ie| {
            match table.member(*ie)?.what {
                Descriptor::Group(inner) => Some(inner),
                Descriptor::Leaf(_) => None,
            }
        })?;
        Some((message, way, table))
    });
    let (mut wrong, mut always) = (Vec::new(), 0);
    for (message, way, table) in messages.chain(groups) {
        let top = message.table().expect("a table");
        let read = |without| Message::decode(&framed(message, &body(top, &way, without)));
        assert!(read(None).is_ok(), "{message} {way:?}: {:?}", read(None));
        for member in table.members {
            let error = read(Some(member.ie)).err().map(|error| error.kind());
            let listed = NO_VALUE_WITHOUT.contains(&(table.table, member.ie));
            let asked = is_always(table, member) != listed;
            always += u32::from(asked);
            let expected = asked.then_some(ErrorKind::Missing(member.ie));
            if error != expected {
                wrong.push(format!("{} {}: {error:?}", table.table, member.ie));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(always > 150, "only {always} are always there");
}
