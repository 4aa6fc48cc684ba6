//! The fields that are not optional in an owned value: those that every interface requires, and no
//! others.

use strowger_pfcp::ie::Cause;
use strowger_pfcp::ie::descriptor::{Descriptor, Group, Member, Presence};
use strowger_pfcp::validate::{FindingKind, findings};
use strowger_pfcp::{
    ErrorKind, IeType, Index, Interfaces, Message, MessageType, MessageView, validate,
};

use crate::bytes::{hex, tlv};
use crate::values::{framed, tables, zeros};

/// The shortest value of a member.
fn least(member: &Member) -> Vec<u8> {
    let value = match member.descriptor {
        Descriptor::Leaf(_) => zeros(member.ie.0),
        Descriptor::Group(inner) => body(inner, &[], None),
    };
    tlv(member.ie.0, &value)
}

/// The mandatory members of a table and the group that the path leads to, without the type
/// `without`.
fn body(table: &Group, way: &[IeType], without: Option<IeType>) -> Vec<u8> {
    let members = table.members.iter();
    let members = members.filter_map(|member| match (way.split_first(), member.descriptor) {
        (Some((next, way)), Descriptor::Group(inner)) if *next == member.ie => {
            Some(tlv(member.ie.0, &body(inner, way, without)))
        }
        (None, _) if without == Some(member.ie) => None,
        _ => (member.presence == Presence::Mandatory).then(|| least(member)),
    });
    members.flatten().collect()
}

/// Members that are not optional in a value although other members of the table may occur on more
/// interfaces: the identifier of a rule, the gate of a QER, and the destination of a FAR.
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

/// Returns `true` if every interface that uses any member of the table requires this one.
fn is_always(table: &Group, member: &Member) -> bool {
    let members = table.members.iter();
    let all = members.fold(Interfaces::NONE, |all, member| all.with(member.on));
    member.presence == Presence::Mandatory && !member.many && member.on == all
}

#[test]
fn owned_values_have_all_universally_mandatory_members() {
    let (mut wrong, mut always) = (Vec::new(), 0);
    for (message, way, table) in tables() {
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

#[test]
fn message_valid_on_any_interface_decodes_to_owned_value() {
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for (message, way, table) in tables() {
        let top = message.table().expect("a table");
        let members = table.members.iter().map(|member| Some(member.ie));
        for without in members.chain([None]) {
            let bytes = framed(message, &body(top, &way, without));
            let mut index = Index::new();
            let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
            let is_value = view.to_message().is_ok();
            let mut left = Interfaces::NONE;
            for on in Interfaces::ALL.iter() {
                let accepted = validate(&view, on).is_ok();
                refused += u32::from(!accepted);
                left = if accepted { left.with(on) } else { left };
                if accepted && (!is_value || !message.interfaces().contains(on)) {
                    wrong.push(format!("{message} {way:?} without {without:?} on {on}"));
                }
            }
            let all = validate(&view, Interfaces::ALL).unwrap_or(Interfaces::NONE);
            assert_eq!(all, left, "{message} {way:?} without {without:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refused > 500, "only {refused} are refused");
}

#[test]
fn message_is_invalid_on_interface_that_lacks_it() {
    let foreign = [
        // PFD Management Response without Cause.
        ("2004000400000400", Interfaces::SXA.with(Interfaces::N4MB)),
        // Session Set Deletion Request without Node ID.
        ("200e000400000400", Interfaces::SXC.with(Interfaces::N4MB)),
    ];
    for (bytes, on) in foreign {
        let bytes = hex(bytes);
        let mut index = Index::new();
        let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
        assert!(validate(&view, Interfaces::ALL).is_err(), "{view}");
        for on in on.iter() {
            let rejection = validate(&view, on).expect_err("no message of the interface");
            assert_eq!(rejection.cause, Cause::SERVICE_NOT_SUPPORTED);
            assert_eq!(rejection.offending_ie, None);
            let text = format!("{}: no message of {on}", view.message_type());
            assert_eq!(rejection.to_string(), text);
            let found = findings(&view, on);
            assert_eq!(found[0].kind, FindingKind::WrongInterface);
        }
    }
    // The same message with its required elements, on an interface that has it.
    let bytes = hex("20040009000004000013000101");
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let on = validate(&view, Interfaces::ALL).expect("it is whole");
    assert_eq!(on, MessageType::PFD_MANAGEMENT_RESPONSE.interfaces());
}

#[test]
fn message_interfaces_match_their_tables() {
    let of = |message: MessageType| message.interfaces().to_string();
    let mut fewer = Vec::new();
    for message in MessageType::ALL {
        if message.interfaces() != Interfaces::ALL {
            fewer.push((message.0, of(*message)));
        }
        // Both messages of a transaction exist on the same interfaces.
        let response = message.response().map(of);
        assert!(
            response.is_none_or(|response| response == of(*message)),
            "{message}"
        );
    }
    let fewer: Vec<_> = fewer
        .iter()
        .map(|(number, on)| (*number, on.as_str()))
        .collect();
    assert_eq!(
        fewer,
        [
            (3, "Sxb Sxc N4"),
            (4, "Sxb Sxc N4"),
            (14, "Sxa Sxb N4"),
            (15, "Sxa Sxb N4"),
            (16, "Sxb N4"),
            (17, "Sxb N4"),
        ]
    );
    assert_eq!(of(MessageType(99)), Interfaces::ALL.to_string());
}
