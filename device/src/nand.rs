//! Raw flash.

use alloc::boxed::Box;

use crate::{Block, Cause, Geometry, Meter, NandCosts, Page, Result};

/// A raw NAND (or NOR) chip.
///
/// # The contract
///
/// - A **page** is programmed once after each erase of its block, or in parts, each after the
///   one before, if [`Geometry::programs_per_page`] allows more than one program. What was not
///   programmed reads as `0xFF`.
/// - A **block** is erased as a whole; then all its pages, spare areas included, read as `0xFF`.
/// - Where [`Geometry::order`] is ascending, a page below one that was programmed stays closed
///   until the block is erased.
/// - The **spare area** of a page is programmed with the page's first part or with a later one,
///   once.
/// - Blocks go **bad**: some are bad from the factory, others refuse a program or an erase later.
///   After [`Error::ProgramRefused`](crate::Error::ProgramRefused) the pages that were programmed
///   before can still be read; the block should be marked and not be used again. A
///   [`Watched`](crate::Watched) chip tells that from a chip that refuses everything.
/// - Operations are **durable and ordered** as they return: there is nothing to flush.
/// - After a **power cut** a torn program leaves anything in that page (each byte erased, written,
///   or neither; the chip's code may call it uncorrectable) and a torn erase leaves anything in
///   any page of that block. Nothing else changes.
/// - An operation that returns an error of its arguments changed nothing.
/// - Where the driver failed, a program or an erase may have been done, or not, or by half; then
///   who works through a [`Watched`](crate::Watched) chip changes it no more until it is opened
///   again.
pub trait Nand: Send {
    /// The shape of the chip.
    fn geometry(&self) -> Geometry;

    /// Reads bytes of `page` from byte `offset` on, and its spare area from the start, into the
    /// two buffers (either may be empty); returns how many flipped bits were corrected.
    ///
    /// # Errors
    /// The page or bytes do not exist; more bits flipped than can be corrected; the driver failed.
    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<u16>;

    /// Programs `data` at byte `offset` of `page`, and `spare` at the start of its spare area
    /// (either may be empty).
    ///
    /// # Errors
    /// A rule of the chip forbids it (nothing changed), or the chip refused.
    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<()>;

    /// Erases `block`.
    ///
    /// # Errors
    /// The block does not exist or is marked bad (nothing changed), or the chip refused.
    fn erase(&mut self, block: Block, cause: Cause) -> Result<()>;

    /// Tells whether `block` is marked bad.
    ///
    /// # Errors
    /// The block does not exist, or the driver failed.
    fn is_bad(&mut self, block: Block) -> Result<bool>;

    /// Marks `block` bad, for good.
    ///
    /// # Errors
    /// The block does not exist, or the driver failed.
    fn mark_bad(&mut self, block: Block) -> Result<()>;

    /// The meter of the chip, if it has one.
    fn meter(&self) -> Option<&Meter> {
        None
    }

    /// What its operations cost, if that is known.
    fn costs(&self) -> Option<&NandCosts> {
        None
    }
}

macro_rules! forward_nand {
    ($wrapper:ty) => {
        impl<N: Nand + ?Sized> Nand for $wrapper {
            fn geometry(&self) -> Geometry {
                (**self).geometry()
            }

            fn read(
                &mut self,
                page: Page,
                offset: u32,
                into: &mut [u8],
                spare: &mut [u8],
                cause: Cause,
            ) -> Result<u16> {
                (**self).read(page, offset, into, spare, cause)
            }

            fn program(
                &mut self,
                page: Page,
                offset: u32,
                data: &[u8],
                spare: &[u8],
                cause: Cause,
            ) -> Result<()> {
                (**self).program(page, offset, data, spare, cause)
            }

            fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
                (**self).erase(block, cause)
            }

            fn is_bad(&mut self, block: Block) -> Result<bool> {
                (**self).is_bad(block)
            }

            fn mark_bad(&mut self, block: Block) -> Result<()> {
                (**self).mark_bad(block)
            }

            fn meter(&self) -> Option<&Meter> {
                (**self).meter()
            }

            fn costs(&self) -> Option<&NandCosts> {
                (**self).costs()
            }
        }
    };
}

forward_nand!(&mut N);
forward_nand!(Box<N>);
