//! Custom autograd functions, hooks on gradients, and the sums of synchronized batch norm: what calls back into Rust.
//!
//! The bindings to libtorch have none of them. The first two are called from libtorch's backward pass, on a CPU in the
//! thread that asked for it. What a callback refuses, or a panic of it, becomes the error of the pass.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tch::{CModule, TchError, Tensor};
use torch_sys::C_tensor;

use crate::error::Result as CudaResult;
use crate::library::{Hook as HookFunction, Release, call};

/// The result of a callback, or the reason why there is none.
pub type CallbackResult<T> = Result<T, String>;

type Backward = dyn Fn(&Tensor) -> CallbackResult<Vec<Tensor>> + Send;
type Hook = dyn Fn(&Tensor) -> CallbackResult<()> + Send;

unsafe extern "C" {
    fn ssn_autograd_node(
        inputs: *const *const C_tensor,
        count: usize,
        result: *const C_tensor,
        gradient: extern "C" fn(*mut c_void, *const C_tensor, *mut *mut C_tensor, usize) -> *mut c_char,
        state: *mut c_void,
        drop: Release,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    fn ssn_autograd_hook(
        leaf: *const C_tensor,
        hook: HookFunction,
        state: *mut c_void,
        drop: Release,
    ) -> *mut c_char;
    fn ssn_autograd_norm_gradients(
        gradient: *const C_tensor,
        x: *const C_tensor,
        weight: *const C_tensor,
        mean: *const C_tensor,
        variance: *const C_tensor,
        eps: f64,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    fn ssn_module_buffers(
        module: *mut c_void,
        state: *mut c_void,
        take: extern "C" fn(*mut c_void, *const c_char, *mut C_tensor),
    ) -> *mut c_char;
    fn ssn_autograd_free(text: *mut c_char);
    fn ssn_autograd_text(text: *const c_char, length: usize) -> *mut c_char;
}

/// A result that was computed from inputs, with the way from its gradient to those of the inputs.
///
/// `result` must not need gradients itself: compute it under `tch::no_grad`. `backward` gets a tensor of the result's
/// shape and gives one of the shape of each input, in their order.
pub fn custom_function(
    inputs: &[&Tensor],
    result: Tensor,
    backward: impl Fn(&Tensor) -> CallbackResult<Vec<Tensor>> + Send + 'static,
) -> Result<Tensor, TchError> {
    extern "C" fn gradient(
        state: *mut c_void,
        gradient: *const C_tensor,
        out: *mut *mut C_tensor,
        count: usize,
    ) -> *mut c_char {
        answered(|| {
            // SAFETY: the state is of `boxed`, and its node lives.
            let backward = unsafe { &*state.cast::<Box<Backward>>() };
            // SAFETY: the tensor lives during this call, and a clone shares its memory.
            let gradient = unsafe { Tensor::clone_from_ptr(gradient.cast_mut()) };
            let found = tch::no_grad(|| backward(&gradient))?;
            if found.len() != count {
                return Err(format!("an operator of {count} inputs has {} gradients", found.len()));
            }
            for (place, mut tensor) in found.into_iter().enumerate() {
                // SAFETY: there are `count` places, and who called takes what is written there.
                unsafe { out.add(place).write(tensor.as_mut_ptr()) };
                std::mem::forget(tensor);
            }
            Ok(())
        })
    }
    let state = boxed::<Backward>(Box::new(backward));
    let pointers: Vec<*const C_tensor> = inputs.iter().map(|input| input.as_ptr()).collect();
    let mut out = std::ptr::null_mut();
    // SAFETY: the tensors live during the call; the state belongs to the node from here on, whatever comes of it.
    told(unsafe {
        let (inputs, count) = (pointers.as_ptr(), pointers.len());
        ssn_autograd_node(inputs, count, result.as_ptr(), gradient, state, release::<Backward>, &mut out)
    })?;
    // SAFETY: without a failure there is a tensor, and it is ours.
    Ok(unsafe { Tensor::from_ptr(out) })
}

/// Calls `hook` with the gradient of a leaf, such as a parameter, whenever a backward pass has computed it and before it
/// is accumulated, for as long as the leaf lives: `Tensor.register_hook` of PyTorch.
pub fn register_hook(
    leaf: &Tensor,
    hook: impl Fn(&Tensor) -> CallbackResult<()> + Send + 'static,
) -> Result<(), TchError> {
    let state = boxed::<Hook>(Box::new(hook));
    // SAFETY: the leaf lives during the call; the state belongs to it from here on, whatever comes of it.
    told(unsafe { ssn_autograd_hook(leaf.as_ptr(), run_hook, state, release::<Hook>) })
}

/// How synchronized batch norm of [`NormOptions`](crate::NormOptions) sums its statistics over ranks, for as long as this
/// lives.
#[derive(Debug)]
pub struct SyncNormReduce(());

impl SyncNormReduce {
    /// Sums tensors in this way from now on: in place, as work of the current stream. One value of a process at a time.
    pub fn new(sum: impl Fn(&Tensor) -> CallbackResult<()> + Send + Sync + 'static) -> CudaResult<Self> {
        // SAFETY: the state belongs to the C++ part from here on.
        call(|library| unsafe {
            (library.ssn_set_sum)(Some(run_hook), boxed::<Hook>(Box::new(sum)), Some(release::<Hook>))
        })?;
        Ok(Self(()))
    }
}

impl Drop for SyncNormReduce {
    fn drop(&mut self) {
        // SAFETY: to forget, and to free what was set, takes no state; it cannot fail.
        let _ = call(|library| unsafe { (library.ssn_set_sum)(None, std::ptr::null_mut(), None) });
    }
}

/// The gradients of x, weight and bias of a batch norm whose mean and variance are constants, which the bindings lack.
///
/// # Shapes
/// `gradient` and `x` `[b, c, …]`; the others `[c]`.
pub fn norm_gradients(
    gradient: &Tensor,
    x: &Tensor,
    weight: &Tensor,
    [mean, variance]: [&Tensor; 2],
    eps: f64,
) -> Result<[Tensor; 3], TchError> {
    let mut out = [std::ptr::null_mut(); 3];
    let [gradient, x, weight, mean, variance] = [gradient, x, weight, mean, variance].map(Tensor::as_ptr);
    // SAFETY: tensors that live during the call, and places for three results.
    told(unsafe { ssn_autograd_norm_gradients(gradient, x, weight, mean, variance, eps, out.as_mut_ptr()) })?;
    // SAFETY: without a failure there are three tensors, and they are ours.
    Ok(out.map(|tensor| unsafe { Tensor::from_ptr(tensor) }))
}

/// Returns the buffers of a TorchScript module, such as the running statistics of its batch norm, by name; the bindings
/// list its parameters only. The tensors share the module's memory.
pub fn module_buffers(module: &CModule) -> Result<Vec<(String, Tensor)>, TchError> {
    extern "C" fn take(state: *mut c_void, name: *const c_char, tensor: *mut C_tensor) {
        // SAFETY: `state` is the vector below, `name` ends with 0, and the tensor is new and ours.
        unsafe {
            let found = &mut *state.cast::<Vec<(String, Tensor)>>();
            found.push((CStr::from_ptr(name).to_string_lossy().into_owned(), Tensor::from_ptr(tensor)));
        }
    }
    const { assert!(size_of::<CModule>() == size_of::<*mut c_void>()) };
    let mut found = Vec::<(String, Tensor)>::new();
    // SAFETY: a `CModule` is a pointer to the C++ module and nothing else, and lives during the call.
    told(unsafe {
        let module = std::ptr::from_ref(module).cast::<*mut c_void>().read();
        ssn_module_buffers(module, std::ptr::from_mut(&mut found).cast(), take)
    })?;
    Ok(found)
}

/// A callback as the state that C++ holds and gives back to [`release`].
fn boxed<F: ?Sized>(callback: Box<F>) -> *mut c_void {
    Box::into_raw(Box::new(callback)).cast()
}

/// Calls a hook that C++ holds.
extern "C" fn run_hook(state: *mut c_void, tensor: *const C_tensor) -> *mut c_char {
    answered(|| {
        // SAFETY: the state is of `boxed`, and who holds it lives.
        let hook = unsafe { &*state.cast::<Box<Hook>>() };
        // SAFETY: the tensor lives during this call, and a clone shares its memory.
        hook(&unsafe { Tensor::clone_from_ptr(tensor.cast_mut()) })
    })
}

/// Frees a callback that C++ held.
extern "C" fn release<F: ?Sized>(state: *mut c_void) {
    // SAFETY: C++ gives back the state that it was given, of `boxed`, once.
    drop(unsafe { Box::from_raw(state.cast::<Box<F>>()) });
}

/// An answer as C++ takes it: nothing, or the text of a failure. Panics must not pass through C++.
fn answered(work: impl FnOnce() -> CallbackResult<()>) -> *mut c_char {
    let answer = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let reason = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(format!("a computation within a forward or backward pass failed: {reason}"))
    });
    match answer {
        Ok(()) => std::ptr::null_mut(),
        // SAFETY: the text lives during the call, which copies it.
        Err(text) => unsafe { ssn_autograd_text(text.as_ptr().cast(), text.len()) },
    }
}

/// What C++ said.
fn told(failure: *mut c_char) -> Result<(), TchError> {
    if failure.is_null() {
        return Ok(());
    }
    // SAFETY: a failure is a text that ends with 0, and ours to free.
    let text = unsafe {
        let text = CStr::from_ptr(failure).to_string_lossy().into_owned();
        ssn_autograd_free(failure);
        text
    };
    Err(TchError::Torch(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tch::{Device, Kind};

    fn leaf(values: &[f64]) -> Tensor {
        Tensor::from_slice(values).set_requires_grad(true)
    }

    #[test]
    fn an_operator_has_the_gradient_it_says() {
        let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 5.0]));
        let product = tch::no_grad(|| &a * &b);
        let (kept_a, kept_b) = (a.detach(), b.detach());
        let c = custom_function(&[&a, &b], product, move |g| Ok(vec![g * &kept_b, g * &kept_a])).unwrap();
        // Through ordinary operators on both sides.
        (c * Tensor::from_slice(&[1.0, 10.0])).sum(Kind::Double).backward();
        assert_eq!(Vec::<f64>::try_from(a.grad()).unwrap(), [3.0, 50.0]);
        assert_eq!(Vec::<f64>::try_from(b.grad()).unwrap(), [1.0, 20.0]);
    }

    #[test]
    fn the_next_operator_may_work_in_place() {
        let a = leaf(&[1.0, -2.0]);
        let double = tch::no_grad(|| &a * 2.0);
        let mut b = custom_function(&[&a], double, |g| Ok(vec![g * 2.0])).unwrap().relu_();
        b = b.f_mul_scalar(3.0).unwrap();
        b.sum(Kind::Double).backward();
        assert_eq!(Vec::<f64>::try_from(a.grad()).unwrap(), [6.0, 0.0]);
    }

    #[test]
    fn failures_and_panics_are_those_of_the_backward_pass() {
        fn fails<T>(panics: bool) -> CallbackResult<T> {
            assert!(!panics, "a panic that the test wants");
            Err("the cable is cut".to_owned())
        }
        for panics in [false, true] {
            let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
            let same = tch::no_grad(|| a.copy());
            let by_node = custom_function(&[&a], same, move |_| fails(panics)).unwrap();
            register_hook(&b, move |_| fails(panics)).unwrap();
            for result in [by_node, &b * 2.0] {
                let error = result.sum(Kind::Double).f_backward().unwrap_err().to_string();
                let told = if panics { "failed: a panic that the test wants" } else { "the cable is cut" };
                assert!(error.contains(told), "{error}");
            }
        }
    }

    #[test]
    fn gradients_are_seen_once_with_all_their_parts() {
        let a = leaf(&[1.0, 2.0]);
        let (send, seen) = channel();
        register_hook(&a, move |g| {
            send.send(Vec::<f64>::try_from(g).map_err(|error| error.to_string())?)
                .map_err(|error| error.to_string())
        })
        .unwrap();
        (&a * &a + &a).sum(Kind::Double).backward();
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [vec![3.0, 5.0]]);
        assert_eq!(Vec::<f64>::try_from(a.grad()).unwrap(), [3.0, 5.0]);
        // What is watched is let go with the leaf.
        drop(a);
        assert!(seen.recv().is_err());
    }

    #[test]
    fn what_a_node_keeps_is_let_go_with_its_graph() {
        let (send, seen) = channel::<()>();
        let a = leaf(&[1.0]);
        let same = tch::no_grad(|| a.copy());
        let c = custom_function(&[&a], same, move |g| {
            let _ = &send;
            Ok(vec![g.shallow_clone()])
        })
        .unwrap();
        assert_eq!(c.device(), Device::Cpu);
        drop(c);
        assert!(seen.recv().is_err());
    }
}
