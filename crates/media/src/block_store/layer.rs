//! A wrapper of a store that overrides only some methods; and a store of one of two types.
use super::{BlockStore, IoBuf};
use tantalum_base::Result;

/// All methods of [`BlockStore`] in one list: the synchronous ones, then the asynchronous ones. `$each` generates a
/// method for each. A missing method is a compile error, because [`BlockStore`] requires it.
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

/// A store that wraps another one. Every call goes to the inner store unless the layer overrides it.
pub trait StoreLayer: 'static {
    /// The wrapped store.
    type Inner: BlockStore;

    /// The wrapped store.
    fn inner(&self) -> &Self::Inner;

    methods!(forwarded);
}

impl<L: StoreLayer> BlockStore for L {
    methods!(taken_from_the_layer);
}

/// A store of one of two types.
#[derive(Clone)]
pub enum EitherStore<A, B> {
    /// The first type.
    One(A),
    /// The second type.
    Other(B),
}

impl<A: BlockStore, B: BlockStore> BlockStore for EitherStore<A, B> {
    methods!(of_one_or_the_other);
}
