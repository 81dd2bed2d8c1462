//! A store on top of another one, which names only what it changes; and one of two stores.
use super::{BlockStore, IoBuf};
use tantalum_base::Result;

/// The methods of [`BlockStore`] in one list, those that take time behind the others; `$each`
/// makes a method of each. What is missing here does not compile, as [`BlockStore`] wants it.
macro_rules! methods {
    ($each:ident) => {
        $each! {
            fn {
                bytes() -> u64;
                modified_ns() -> Option<u64>;
                buffer(bytes: usize) -> IoBuf;
                recycle(buf: IoBuf) -> ();
                keep_spare(bytes: u64) -> ();
                check_room() -> Result<()>;
                next_room(offset: u64) -> Option<u64>;
            }
            async fn {
                read(offset: u64, buf: IoBuf) -> Result<IoBuf>;
                write(offset: u64, buf: IoBuf, durable: bool) -> Result<IoBuf>;
                sync() -> Result<()>;
                zero(offset: u64, bytes: u64) -> Result<()>;
                prepare(offset: u64, bytes: u64) -> Result<()>;
                give_room_back(offset: u64, bytes: u64) -> Result<bool>;
            }
        }
    };
}

macro_rules! forwarded {
    (
        fn { $($plain:ident($($given:ident: $of:ty),*) -> $now:ty;)+ }
        async fn { $($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)+ }
    ) => {
        $(#[doc = concat!("As [`BlockStore::", stringify!($plain), "`].")]
        fn $plain(&self, $($given: $of),*) -> $now {
            self.inner().$plain($($given),*)
        })+
        $(#[doc = concat!("As [`BlockStore::", stringify!($name), "`].")]
        fn $name(&self, $($argument: $type),*) -> impl Future<Output = $out> {
            self.inner().$name($($argument),*)
        })+
    };
}

macro_rules! taken_from_the_layer {
    (
        fn { $($plain:ident($($given:ident: $of:ty),*) -> $now:ty;)+ }
        async fn { $($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)+ }
    ) => {
        $(fn $plain(&self, $($given: $of),*) -> $now {
            StoreLayer::$plain(self, $($given),*)
        })+
        $(fn $name(&self, $($argument: $type),*) -> impl Future<Output = $out> {
            StoreLayer::$name(self, $($argument),*)
        })+
    };
}

macro_rules! of_one_or_the_other {
    (
        fn { $($plain:ident($($given:ident: $of:ty),*) -> $now:ty;)+ }
        async fn { $($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)+ }
    ) => {
        $(fn $plain(&self, $($given: $of),*) -> $now {
            match self {
                Self::One(store) => store.$plain($($given),*),
                Self::Other(store) => store.$plain($($given),*),
            }
        })+
        $(async fn $name(&self, $($argument: $type),*) -> $out {
            match self {
                Self::One(store) => store.$name($($argument),*).await,
                Self::Other(store) => store.$name($($argument),*).await,
            }
        })+
    };
}

/// A store over another one. Everything goes to the store underneath, but for what the layer has
/// its own version of.
pub trait StoreLayer: 'static {
    /// The store underneath.
    type Inner: BlockStore;

    /// The store underneath.
    fn inner(&self) -> &Self::Inner;

    methods!(forwarded);
}

impl<L: StoreLayer> BlockStore for L {
    methods!(taken_from_the_layer);
}

/// A store that is one of two kinds.
#[derive(Clone)]
pub enum EitherStore<A, B> {
    /// The one kind.
    One(A),
    /// The other kind.
    Other(B),
}

impl<A: BlockStore, B: BlockStore> BlockStore for EitherStore<A, B> {
    methods!(of_one_or_the_other);
}
