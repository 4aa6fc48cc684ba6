//! The macros behind the rows of elements and messages that consist of elements.

/// Defines a table of members: `Type View = NUMBER "table" { field: Type presence kind
/// [interfaces]; }`.
///
/// The presence is `M`, `C` or `O`. The kind is `one` (always present), `opt`, `rare` (boxed),
/// `many` or `few` (a list that is usually empty). A text at the end of a row is the name of the
/// member in the table. `= message` defines the body of a message. If release 17 has a member on
/// other interfaces, they follow after `; R17`. The types are those of [`crate::ie`], so that files
/// of rows import none.
macro_rules! group {
    (
        $(#[$doc:meta])* $name:ident $view:ident = message $table:literal { $($row:tt)* }
    ) => {
        $crate::ie::members::group_struct! { $(#[$doc])* $name $view None, $table { $($row)* } }
    };
    (
        $(#[$doc:meta])* $name:ident $view:ident = $ie:ident $table:literal { $($row:tt)* }
    ) => {
        $crate::ie::members::group_struct! {
            $(#[$doc])* $name $view Some($crate::ie::IeType::$ie), $table { $($row)* }
        }

        impl $crate::ie::Ie for $name {
            const TYPE: $crate::ie::IeType = $crate::ie::IeType::$ie;
            const DESCRIPTOR: $crate::ie::Descriptor = $crate::ie::Descriptor::Group(Self::GROUP);
            type View<'a> = $view<'a>;

            #[inline]
            fn view(part: $crate::wire::Part<'_>) -> Option<$view<'_>> {
                Some($view(part))
            }

            #[inline]
            fn from_part(part: $crate::wire::Part<'_>) -> Result<Self, $crate::error::Error> {
                let ((tree, node), mut value) =
                    (part.tree_and_node(), <Self as $crate::ie::element::Owned>::blank());
                $crate::ie::element::Owned::fill(&mut value, &tree, node).map(|()| value)
            }

            #[inline]
            fn write(&self, out: &mut $crate::wire::Writer<'_>) {
                self.write_members(out);
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::text::value(f, <Self as $crate::ie::Ie>::DESCRIPTOR, self)
            }
        }

        impl $crate::text::FormatEncoded for $name {
            fn encoded(&self, out: &mut Vec<u8>) -> Result<(), $crate::error::ErrorKind> {
                self.write_members(&mut $crate::wire::Writer::new(out));
                Ok(())
            }
        }
    };
}

macro_rules! group_struct {
    (
        $(#[$doc:meta])* $name:ident $view:ident $ie:expr, $table:literal {
            $(
                $field:ident: $type:ident, $presence:ident $kind:ident
                [$($on:ident)* $(; R17 $($before:ident)*)?] $($role:literal)?;
            )*
        }
    ) => {
        $(#[$doc])*
        ///
        #[doc = concat!("TS 29.244 Table ", $table, ".")]
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(
                #[doc = concat!(
                    "Holds the member `", stringify!($type), "` (", stringify!($presence), ").")]
                pub $field: $crate::ie::members::member_type!($kind $type),
            )*
            /// Holds the content that the members do not express: order, unknown elements and spare
            /// bits.
            pub rest: $crate::ie::GroupRemainder,
        }

        impl Eq for $name {}

        impl $name {
            pub(crate) const GROUP: &'static $crate::ie::Group = {
                static GROUP: $crate::ie::Group = $crate::ie::Group::new($ie, $table, &[
                    $($crate::ie::Member {
                        ie: <$crate::ie::$type as $crate::ie::Ie>::TYPE,
                        role: $crate::ie::members::member_role!($($role)?),
                        presence: $crate::ie::members::member_presence!($presence),
                        many: $crate::ie::members::member_many!($kind),
                        on: $crate::ie::Interfaces::NONE
                            $(.with($crate::ie::Interfaces::$on))*,
                        on_r17: $crate::ie::members::member_before!(
                            $type, [$($on)*] $([$($before)*])?
                        ),
                        descriptor: <$crate::ie::$type as $crate::ie::Ie>::DESCRIPTOR,
                    },)*
                ], |part, out| {
                    let ((tree, node), mut value) =
                        (part.tree_and_node(), <$name as $crate::ie::element::Owned>::blank());
                    $crate::ie::element::Owned::fill(&mut value, &tree, node)
                        .map(|()| value.write_members(out))
                });
                &GROUP
            };

            $crate::ie::members::group_new! { [] [] $($kind $field: $type,)* }

            $($crate::ie::members::member_setter!($kind $field: $type);)*

            pub(crate) fn write_members(&self, out: &mut $crate::wire::Writer<'_>) {
                let start = out.out.len();
                $($crate::ie::members::member_put!($kind self.$field, out);)*
                if !self.rest.is_empty() {
                    self.rest.arrange(out, start, Self::GROUP);
                }
            }
        }

        impl $crate::ie::element::Owned for $name {
            #[inline]
            fn blank() -> Self {
                Self {
                    $($field: $crate::ie::members::member_blank!($kind $type),)*
                    rest: $crate::ie::GroupRemainder::default(),
                }
            }

            fn fill(
                &mut self,
                tree: &$crate::wire::Tree<'_>,
                node: $crate::wire::IndexNode,
            ) -> Result<(), $crate::error::Error> {
                const ALWAYS: u64 = 0 $(| $crate::ie::members::member_always!($kind $name $type))*;
                let mut lacking = ALWAYS;
                let mut below = tree.below(node);
                while let Some(inner) = below.next_node() {
                    lacking &= !1u64.checked_shl(inner.slot().into()).unwrap_or(0);
                    let filled = match inner.slot() {
                        $(slot if slot == $crate::ie::members::member_slot!($name $type) => {
                            $crate::ie::members::member_fill!($kind self.$field, tree inner below)
                        })*
                        _ => Ok(()),
                    };
                    // The path is only determined if an error occurs.
                    if let Err(error) = filled {
                        return Err(tree.locate(error, (node, Self::GROUP), below.remaining()));
                    }
                }
                if lacking != 0 {
                    let error = $crate::ie::element::missing_member_error;
                    return Err(error(Self::GROUP, lacking, node));
                }
                if let Some(group) = tree.irregular_group(node, Self::GROUP) {
                    self.rest = $crate::ie::GroupRemainder::of(group);
                }
                Ok(())
            }
        }

        #[doc = concat!("Borrows a [`", stringify!($name), "`] from a checked message.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'a>(pub(crate) $crate::wire::Part<'a>);

        impl<'a> $view<'a> {
            /// Returns the untyped part.
            #[must_use]
            pub const fn part(self) -> $crate::wire::Part<'a> {
                self.0
            }

            $($crate::ie::members::member_getter!('a $name $kind $field: $type);)*
        }
    };
}

/// Defines the constructor, whose arguments are the members that are always present.
macro_rules! group_new {
    (
        [$($argument:ident: $argument_type:ty,)*] [$($field:ident = $value:expr,)*]
    ) => {
        /// Creates a value from the members that are always present. The others are absent.
        #[must_use]
        #[expect(
            clippy::allow_attributes,
            clippy::allow_attributes_without_reason,
            reason = "few tables have that many"
        )]
        #[allow(clippy::too_many_arguments, clippy::new_without_default)]
        pub fn new($($argument: impl Into<$argument_type>),*) -> Self {
            Self { $($field: $value,)* rest: $crate::ie::GroupRemainder::default() }
        }
    };
    (
        [$($arguments:tt)*] [$($fields:tt)*] one $field:ident: $type:ident, $($more:tt)*
    ) => {
        $crate::ie::members::group_new! {
            [$($arguments)* $field: $crate::ie::$type,]
            [$($fields)* $field = $field.into(),]
            $($more)*
        }
    };
    (
        [$($arguments:tt)*] [$($fields:tt)*] $kind:ident $field:ident: $type:ident, $($more:tt)*
    ) => {
        $crate::ie::members::group_new! {
            [$($arguments)*] [$($fields)* $field = Default::default(),] $($more)*
        }
    };
}

macro_rules! member_type {
    (one $type:ident) => { $crate::ie::$type };
    (opt $type:ident) => { Option<$crate::ie::$type> };
    (rare $type:ident) => { Option<Box<$crate::ie::$type>> };
    (many $type:ident) => { Vec<$crate::ie::$type> };
    (few $type:ident) => { $crate::ie::ThinList<$crate::ie::$type> };
}

macro_rules! member_role {
    () => {
        None
    };
    ($role:literal) => {
        Some($role)
    };
}

macro_rules! member_presence {
    (M) => {
        $crate::ie::Presence::Mandatory
    };
    (C) => {
        $crate::ie::Presence::Conditional
    };
    (O) => {
        $crate::ie::Presence::Optional
    };
}

/// The interfaces in release 17: those of the row, unless the row specifies others or the element
/// is newer.
macro_rules! member_before {
    ($type:ident, [$($on:ident)*]) => {
        $crate::ie::Interfaces::NONE
            $(.with($crate::ie::Interfaces::$on))*
            .before(<$crate::ie::$type as $crate::ie::Ie>::TYPE.since())
    };
    ($type:ident, [$($on:ident)*] [$($before:ident)*]) => {
        $crate::ie::Interfaces::NONE $(.with($crate::ie::Interfaces::$before))*
    };
}

macro_rules! member_many {
    (many) => {
        true
    };
    (few) => {
        true
    };
    ($kind:ident) => {
        false
    };
}

macro_rules! member_setter {
    (many $field:ident: $type:ident) => {
        #[doc = concat!("Adds members `", stringify!($type), "`.")]
        #[must_use]
        pub fn $field<I>(mut self, values: impl IntoIterator<Item = I>) -> Self
        where
            I: Into<$crate::ie::$type>,
        {
            self.$field.extend(values.into_iter().map(Into::into));
            self
        }
    };
    (few $field:ident: $type:ident) => {
        $crate::ie::members::member_setter!(many $field: $type);
    };
    (one $field:ident: $type:ident) => {
        #[doc = concat!("Sets the member `", stringify!($type), "`.")]
        #[must_use]
        pub fn $field(mut self, value: impl Into<$crate::ie::$type>) -> Self {
            self.$field = value.into();
            self
        }
    };
    (opt $field:ident: $type:ident) => {
        #[doc = concat!("Sets the member `", stringify!($type), "`.")]
        #[must_use]
        pub fn $field(mut self, value: impl Into<$crate::ie::$type>) -> Self {
            self.$field = Some(value.into());
            self
        }
    };
    (rare $field:ident: $type:ident) => {
        #[doc = concat!("Sets the member `", stringify!($type), "`.")]
        #[must_use]
        pub fn $field(mut self, value: impl Into<$crate::ie::$type>) -> Self {
            self.$field = Some(Box::new(value.into()));
            self
        }
    };
}

macro_rules! member_getter {
    ($life:lifetime $name:ident many $field:ident: $type:ident) => {
        #[doc = concat!("Walks the members `", stringify!($type), "`.")]
        #[inline]
        pub fn $field(
            self,
        ) -> impl Iterator<Item = <$crate::ie::$type as $crate::ie::Ie>::View<$life>> + use<$life> {
            const ROW: (u8, &$crate::ie::Member) =
                $name::GROUP.row(<$crate::ie::$type as $crate::ie::Ie>::TYPE);
            self.0
                .member_parts(ROW.1, ROW.0)
                .filter_map(<$crate::ie::$type as $crate::ie::Ie>::view)
        }
    };
    ($life:lifetime $name:ident few $field:ident: $type:ident) => {
        $crate::ie::members::member_getter!($life $name many $field: $type);
    };
    ($life:lifetime $name:ident $kind:ident $field:ident: $type:ident) => {
        #[doc = concat!("Returns the member `", stringify!($type), "`.")]
        #[must_use]
        #[inline]
        pub fn $field(self) -> Option<<$crate::ie::$type as $crate::ie::Ie>::View<$life>> {
            const ROW: (u8, &$crate::ie::Member) =
                $name::GROUP.row(<$crate::ie::$type as $crate::ie::Ie>::TYPE);
            let part = self.0.single_member(ROW.1, ROW.0)?;
            <$crate::ie::$type as $crate::ie::Ie>::view(part)
        }
    };
}

macro_rules! member_blank {
    (one $type:ident) => {
        <$crate::ie::$type as $crate::ie::element::Owned>::blank()
    };
    (many $type:ident) => {
        Vec::new()
    };
    (few $type:ident) => {
        $crate::ie::ThinList::new()
    };
    ($kind:ident $type:ident) => {
        None
    };
}

macro_rules! member_always {
    (one $name:ident $type:ident) => {
        1 << $crate::ie::members::member_slot!($name $type)
    };
    ($kind:ident $name:ident $type:ident) => {
        0
    };
}

/// The slot of a member, as an unnamed constant: for each constant with the name of a field, the
/// compiler's naming lint would read the whole crate.
macro_rules! member_slot {
    ($name:ident $type:ident) => {
        const {
            $name::GROUP
                .row(<$crate::ie::$type as $crate::ie::Ie>::TYPE)
                .0
        }
    };
}

macro_rules! member_fill {
    (one $field:expr, $tree:ident $inner:ident $below:ident) => {
        $crate::ie::element::Owned::fill(&mut $field, $tree, $inner)
    };
    (opt $field:expr, $tree:ident $inner:ident $below:ident) => {
        $crate::ie::element::Owned::fill(
            $field.insert($crate::ie::element::Owned::blank()),
            $tree,
            $inner,
        )
    };
    (rare $field:expr, $tree:ident $inner:ident $below:ident) => {
        $crate::ie::element::Owned::fill(
            &mut **$field.insert(Box::new($crate::ie::element::Owned::blank())),
            $tree,
            $inner,
        )
    };
    (many $field:expr, $tree:ident $inner:ident $below:ident) => {
        $crate::ie::element::fill_run(&mut $field, $tree, $inner, &mut $below)
    };
    (few $field:expr, $tree:ident $inner:ident $below:ident) => {
        $crate::ie::element::fill_run($field.list(), $tree, $inner, &mut $below)
    };
}

macro_rules! member_put {
    (one $value:expr, $out:ident) => {
        $crate::ie::element::Owned::put_element(&$value, $out)
    };
    (opt $value:expr, $out:ident) => {
        if let Some(value) = &$value {
            $crate::ie::element::Owned::put_element(value, $out);
        }
    };
    (rare $value:expr, $out:ident) => {
        if let Some(value) = &$value {
            $crate::ie::element::Owned::put_element(&**value, $out);
        }
    };
    ($list:ident $value:expr, $out:ident) => {
        for value in &$value {
            $crate::ie::element::Owned::put_element(value, $out);
        }
    };
}

pub(crate) use {
    group, group_new, group_struct, member_always, member_before, member_blank, member_fill,
    member_getter, member_many, member_presence, member_put, member_role, member_setter,
    member_slot, member_type,
};
