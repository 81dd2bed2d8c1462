//! Fault points: protections that a test can switch off, to prove that the tests detect their absence.
//!
//! A crate declares its own with [`fault_points!`](crate::fault_points!), in one file, and checks
//! `Fault::Name.is_planted()` at the protection. Tests plant one fault at a time. Without the feature
//! `planted-faults`, which only tests enable, `is_planted` is a constant false, and the compiler removes the check.

/// A fault point of a crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPoint {
    /// The crate that declares it.
    pub crate_name: &'static str,
    /// Its name in that crate.
    pub name: &'static str,
}

/// Declares the fault points of a crate as variants of an enum `Fault`. The doc comment of each states the failure
/// that the planted fault causes.
#[macro_export]
macro_rules! fault_points {
    ($($(#[doc = $what:literal])+ $name:ident,)+) => {
        /// Failures that occur in this crate if a test switches a protection off.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[doc = $what])+ $name,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Whether it is planted on this thread.
            #[inline(always)]
            pub fn is_planted(self) -> bool {
                $crate::fault_points::is_planted(self)
            }
        }

        impl From<Fault> for $crate::fault_points::FaultPoint {
            fn from(fault: Fault) -> Self {
                let name = match fault {
                    $(Fault::$name => stringify!($name),)+
                };
                Self { crate_name: env!("CARGO_PKG_NAME"), name }
            }
        }
    };
}

#[cfg(feature = "planted-faults")]
mod switch {
    use super::FaultPoint;
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    thread_local! {
        static PLANTED: Cell<Option<FaultPoint>> = const { Cell::new(None) };
    }

    /// A planted fault of this thread; dropping it removes the fault.
    #[must_use = "the fault is planted for as long as this is kept"]
    #[derive(Debug)]
    pub struct Planted {
        before: Option<FaultPoint>,
        /// Not `Send`: it must be dropped on the thread that planted it.
        not_send: PhantomData<*const ()>,
    }

    /// Plants a fault on this thread and replaces the previous one.
    pub fn plant(fault: impl Into<FaultPoint>) -> Planted {
        let before = PLANTED.replace(Some(fault.into()));
        Planted { before, not_send: PhantomData }
    }

    /// Runs `search`, which looks for a broken promise: once without the fault, when it must find none, and once with
    /// the fault planted, when it must find one. A panic counts as a broken promise.
    ///
    /// # Panics
    /// If `search` finds a broken promise without the fault, or none with it.
    pub fn assert_noticed(fault: impl Into<FaultPoint>, search: impl Fn() -> Option<String>) {
        let fault = fault.into();
        let look = || {
            let found = catch_unwind(AssertUnwindSafe(&search));
            found.unwrap_or_else(|_| Some("an assertion".into()))
        };
        assert_eq!(look(), None, "without {fault:?}");
        let _planted = plant(fault);
        let found = look();
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} was not noticed");
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            PLANTED.set(self.before);
        }
    }

    /// Whether `fault` is planted on this thread.
    #[inline]
    pub fn is_planted(fault: impl Into<FaultPoint>) -> bool {
        PLANTED.get().is_some_and(|planted| planted == fault.into())
    }
}

#[cfg(feature = "planted-faults")]
pub use switch::{Planted, assert_noticed, is_planted, plant};

/// Whether a fault is planted: always false without the feature `planted-faults`.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub fn is_planted<T: Copy>(_fault: T) -> bool {
    false
}

#[cfg(all(test, feature = "planted-faults"))]
mod tests {
    use super::{FaultPoint, plant};

    crate::fault_points! {
        /// The first.
        First,
        /// The second.
        Second,
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a fault is planted on one thread only")]
    fn a_fault_is_planted_on_its_thread_until_it_is_dropped() {
        let planted = || Fault::ALL.iter().map(|fault| fault.is_planted()).collect::<Vec<_>>();
        assert_eq!(planted(), [false, false]);
        let first = plant(Fault::First);
        {
            let _second = plant(Fault::Second);
            assert_eq!(planted(), [false, true]);
        }
        assert_eq!(planted(), [true, false]);
        assert_eq!(std::thread::spawn(|| Fault::First.is_planted()).join().ok(), Some(false));
        drop(first);
        assert_eq!(planted(), [false, false]);
    }

    #[test]
    fn points_of_the_same_name_in_two_crates_are_two() {
        let _planted = plant(FaultPoint { crate_name: "another", name: "First" });
        assert!(!Fault::First.is_planted());
    }
}
