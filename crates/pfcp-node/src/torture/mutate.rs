//! Wrong requests, made of sound ones row by row.

use strowger_pfcp::IeType;
use strowger_pfcp::ie::descriptor::{Descriptor, Group, Interfaces, Member, Presence};

use super::case::{TortureAnswer, TortureCase};
use super::sound::Sound;
use super::tree::Element;

/// Groups are followed to this depth.
const DEPTH: usize = 5;

/// Every row of a request's table, and of the groups in it: missing, empty, short, long, out of
/// range, doubled, in the wrong place.
pub(super) fn elements(sound: &Sound) -> Vec<TortureCase> {
    let Some(table) = sound.message_type.table() else {
        return Vec::new();
    };
    let mut mutations = Mutations {
        sound,
        top: table,
        cases: Vec::new(),
    };
    let place = Place {
        path: Vec::new(),
        grounded: true,
        whole: &|elements| elements,
    };
    mutations.group(table, &sound.elements, &place);
    mutations.cases
}

struct Mutations<'a> {
    sound: &'a Sound,
    top: &'static Group,
    cases: Vec<TortureCase>,
}

/// Where a group is in the message.
struct Place<'a> {
    path: Vec<IeType>,
    /// Whether the sound message has the group, so that nothing else can be wrong with it.
    grounded: bool,
    /// Makes the elements of the message from those of the group.
    whole: &'a dyn Fn(Vec<Element>) -> Vec<Element>,
}

/// One thing that can be wrong with an element.
#[derive(Clone, Copy)]
struct Way {
    family: &'static str,
    clause: &'static str,
}

const MISSING: Way = Way {
    family: "element missing",
    clause: "7.6.6",
};
const EMPTY: Way = Way {
    family: "element empty",
    clause: "7.6.7",
};
const SHORT: Way = Way {
    family: "element short",
    clause: "7.6.7",
};
const LONG: Way = Way {
    family: "element long",
    clause: "7.6.7",
};
const RANGE: Way = Way {
    family: "element out of range",
    clause: "7.6.8",
};
const DOUBLED: Way = Way {
    family: "element doubled",
    clause: "7.6.10",
};
const PLACE: Way = Way {
    family: "element in the wrong place",
    clause: "7.6.9",
};

impl Mutations<'_> {
    fn group(&mut self, table: &'static Group, here: &[Element], place: &Place<'_>) {
        for member in table.members {
            if member.on.and(Interfaces::N4).is_empty() {
                continue;
            }
            let at = here.iter().position(|element| element.ie == member.ie);
            let sound = at.map_or_else(|| Element::least(member), |at| here[at].clone());
            let grounded = place.grounded && at.is_some();
            let put = |element: Element| {
                let mut elements = here.to_vec();
                match at {
                    Some(at) => elements[at] = element,
                    None => elements.push(element),
                }
                (place.whole)(elements)
            };
            if at.is_some() {
                self.missing(table, member, here, place);
                self.doubled(member, &sound, here, place);
            }
            self.values(member, &sound, grounded, place, &put);
            if grounded && !place.path.is_empty() {
                self.misplaced(member, &sound);
            }
            if let Descriptor::Group(inner) = member.what
                && place.path.len() + 1 < DEPTH
            {
                let mut path = place.path.clone();
                path.push(member.ie);
                let whole = |elements| put(Element::group(member.ie, elements));
                let inside = Place {
                    path,
                    grounded,
                    whole: &whole,
                };
                self.group(inner, sound.elements(), &inside);
            }
        }
    }

    fn missing(&mut self, table: &Group, member: &Member, here: &[Element], place: &Place<'_>) {
        let mut left = here.to_vec();
        left.retain(|element| element.ie != member.ie);
        let expect = match place.grounded && is_needed(table, member) {
            true => refused(self.sound, &[66], member.ie, &place.path),
            false => answered(self.sound),
        };
        self.add(MISSING, member, place, &(place.whole)(left), expect);
    }

    fn doubled(&mut self, member: &Member, sound: &Element, here: &[Element], place: &Place<'_>) {
        let mut elements = here.to_vec();
        elements.push(sound.clone());
        let leaf = matches!(member.what, Descriptor::Leaf(_));
        // Only the first counts; where there may be several, two of a name may be too many.
        let expect = match place.grounded && leaf && !member.many {
            true => accepted(self.sound),
            false => answered(self.sound),
        };
        self.add(DOUBLED, member, place, &(place.whole)(elements), expect);
    }

    fn values(
        &mut self,
        member: &Member,
        sound: &Element,
        grounded: bool,
        place: &Place<'_>,
        put: &dyn Fn(Element) -> Vec<Element>,
    ) {
        let value = sound.value();
        let least = match member.what {
            Descriptor::Leaf(leaf) => leaf.min,
            Descriptor::Group(_) => 0,
        };
        let is_bad = grounded && member.presence == Presence::Mandatory && least > 0;
        let short = value.get(..least.saturating_sub(1)).unwrap_or_default();
        let long = [&value[..], &[0; 3]].concat();
        let full = vec![0xff; value.len().max(least).max(1)];
        let rows = [
            (EMPTY, Vec::new(), is_bad),
            (SHORT, short.to_vec(), is_bad),
            (LONG, long, false),
            (RANGE, full, false),
        ];
        for (way, octets, is_bad) in rows {
            let same = octets == value || (way.family == SHORT.family && octets.is_empty());
            // Every time is within range, and a later one says that the sender has restarted.
            let is_time = member.ie == IeType::RECOVERY_TIME_STAMP;
            if same || (is_time && way.family == RANGE.family) {
                continue;
            }
            let expect = match is_bad {
                true => refused(self.sound, &[66, 68, 69], member.ie, &place.path),
                false => answered(self.sound),
            };
            let elements = put(Element::leaf(member.ie, octets));
            self.add(way, member, place, &elements, expect);
        }
    }

    /// A sound element of a group once more at the top of the message, where it means nothing.
    fn misplaced(&mut self, member: &Member, sound: &Element) {
        if self.top.member(member.ie).is_some() {
            return;
        }
        let mut elements = self.sound.elements.clone();
        elements.push(sound.clone());
        let top = Place {
            path: Vec::new(),
            grounded: true,
            whole: &|elements| elements,
        };
        let expect = accepted(self.sound);
        self.add(PLACE, member, &top, &elements, expect);
    }

    fn add(
        &mut self,
        way: Way,
        member: &Member,
        place: &Place<'_>,
        elements: &[Element],
        expect: Vec<TortureAnswer>,
    ) {
        let Some(octets) = self.sound.with(elements) else {
            return;
        };
        let mut name = self.sound.message_type.to_string();
        for ie in place.path.iter().chain([&member.ie]) {
            name.push_str(" / ");
            name.push_str(&ie.to_string());
        }
        self.cases.push(TortureCase {
            family: way.family.to_owned(),
            name,
            clause: way.clause.to_owned(),
            octets,
            sender: self.sound.sender,
            expect,
        });
    }
}

/// Whether every interface that has the message asks for the member.
fn is_needed(table: &Group, member: &Member) -> bool {
    let of_message = table.members.iter().map(|one| one.on);
    let all = of_message.fold(Interfaces::NONE, Interfaces::with);
    member.presence == Presence::Mandatory && member.on.contains(all)
}

/// The node takes the request.
pub(super) fn accepted(sound: &Sound) -> Vec<TortureAnswer> {
    if sound.message_type == strowger_pfcp::MessageType::HEARTBEAT_REQUEST {
        return answered(sound);
    }
    vec![TortureAnswer::one(sound.response()).causes(&[1, 76])]
}

/// The node answers, whatever it says.
fn answered(sound: &Sound) -> Vec<TortureAnswer> {
    let one = TortureAnswer::one(sound.response());
    match sound.message_type.0 {
        // No answer has a place for what is wrong with it.
        1 => vec![one, TortureAnswer::none()],
        _ => vec![one],
    }
}

/// The node does not take the request.
fn refused(sound: &Sound, causes: &[u8], ie: IeType, path: &[IeType]) -> Vec<TortureAnswer> {
    if sound.message_type == strowger_pfcp::MessageType::HEARTBEAT_REQUEST {
        return vec![TortureAnswer::none()];
    }
    let mut causes = causes.to_vec();
    // Whoever does not have the service at all need not look at the rest.
    if !sound.message_type.is_session() {
        causes.push(76);
    }
    let offending = path.iter().copied().chain([ie]);
    let one = TortureAnswer::one(sound.response());
    vec![one.causes(&causes).offending(offending)]
}
