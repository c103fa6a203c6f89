//! A macro for sets of kernel flag bits. A set contains only the bits named here, so that a caller cannot pass
//! an unexpected one.

/// Defines a `Copy` set of flag bits with `|`, `contains` and `bits`.
macro_rules! flag_set {
    (
        $(#[$doc:meta])*
        pub struct $name:ident: $repr:ty {
            $( $(#[$flag_doc:meta])* $flag:ident = $value:expr; )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name($repr);

        impl $name {
            /// The empty set.
            pub const NONE: Self = Self(0);
            $( $(#[$flag_doc])* pub const $flag: Self = Self($value); )*

            /// The bits as the kernel takes them.
            pub const fn bits(self) -> $repr {
                self.0
            }

            /// Whether every flag of `other` is in this set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The union, for use in constants.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                *self = self.union(other);
            }
        }
    };
}

pub(crate) use flag_set;
