//! Base of all other rooms: conversion between values of the core and of Python, exceptions, locks, signals and threads.
//!
//! In: values of the core, or Python objects.  Out: the other; exceptions of deltafold.
//!
//! Law: this room imports no other room.

pub(crate) mod bytes;
pub(crate) mod callback;
pub(crate) mod clock;
pub(crate) mod contract;
pub(crate) mod errors;
pub(crate) mod failure;
pub(crate) mod imports;
pub(crate) mod interpreter;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod members;
pub(crate) mod model;
pub(crate) mod parallel;
pub(crate) mod plain_json;
pub(crate) mod signals;
pub(crate) mod text;
pub(crate) mod try_lock;
