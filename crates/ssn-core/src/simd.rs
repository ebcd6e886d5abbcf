//! Runs a loop with the widest vector instructions of the CPU.

/// Calls `body` compiled for the CPU's vector instructions.
///
/// Functions that `body` calls take part when they are `#[inline(always)]`; so must the closure itself be.
/// Results do not change: without license to reassociate, the compiler vectorizes only what is exact.
#[inline(always)]
pub fn vectorized<R>(body: impl FnMut() -> R) -> R {
    pulp::Arch::new().dispatch(Body(body))
}

/// A closure called as `FnMut`: called as `FnOnce`, it would hide behind a shim that is never inlined.
struct Body<F>(F);

impl<R, F: FnMut() -> R> pulp::NullaryFnOnce for Body<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}
