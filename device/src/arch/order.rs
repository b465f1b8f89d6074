//! Memory orders and scopes as types.
//!
//! Source: "Memory Consistency Model", PTX ISA 8.7.

macro_rules! order {
    ($($(#[$meta:meta])* $name:ident: $($trait:ident = $kind:ident),*;)*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        $( impl $trait for $name { const KIND: $kind = $kind::$name; } )*
    )* };
}

order! {
    /// `.relaxed`: no order beyond that of the one word.
    Relaxed: LoadOrder = LoadKind, StoreOrder = StoreKind, RmwOrder = RmwKind;
    /// `.acquire`: what the matching release published is visible to the accesses that follow.
    Acquire: LoadOrder = LoadKind, RmwOrder = RmwKind;
    /// `.release`: the accesses before are visible to whoever acquires the value.
    Release: StoreOrder = StoreKind, RmwOrder = RmwKind;
    /// `.acq_rel`: both.
    AcqRel: RmwOrder = RmwKind, FenceOrder = FenceKind;
    /// `.sc`: both, and one order of all such fences.
    SeqCst: FenceOrder = FenceKind;
}

/// An order that a load has.
pub trait LoadOrder: Copy {
    /// Which.
    const KIND: LoadKind;
}

/// An order that a store, or a reduction without a result (`red`), has.
pub trait StoreOrder: Copy {
    /// Which.
    const KIND: StoreKind;
}

/// An order that a read-modify-write with a result (`atom`) has.
pub trait RmwOrder: Copy {
    /// Which.
    const KIND: RmwKind;
}

/// An order that a fence has.
pub trait FenceOrder: Copy {
    /// Which.
    const KIND: FenceKind;
}

/// The orders of a load.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the types of the same names say it")]
pub enum LoadKind {
    Relaxed,
    Acquire,
}

/// The orders of a store.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the types of the same names say it")]
pub enum StoreKind {
    Relaxed,
    Release,
}

/// The orders of a read-modify-write.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the types of the same names say it")]
pub enum RmwKind {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
}

/// The orders of a fence.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the types of the same names say it")]
pub enum FenceKind {
    AcqRel,
    SeqCst,
}

/// Who takes part in an ordered access: [`Cta`], [`Gpu`], [`Sys`].
pub trait Scope: Copy {
    /// Which.
    const KIND: ScopeKind;
}

/// The scopes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the types of the same names say it")]
pub enum ScopeKind {
    Cta,
    Gpu,
    Sys,
}

macro_rules! scope {
    ($($(#[$meta:meta])* $name:ident)*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Scope for $name { const KIND: ScopeKind = ScopeKind::$name; }
    )* };
}

scope! {
    /// `.cta`: the threads of the block.
    Cta
    /// `.gpu`: the threads of the device.
    Gpu
    /// `.sys`: every thread of the system, other devices and the host among them.
    Sys
}
