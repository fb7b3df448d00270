//! What the compiler registers before `main`: fat binaries, kernels and variables.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use gpumodel_trace_run::RunError;
use gpumodel_trace_run::cubin::{Module, choose, entries, total_bytes};
use gpumodel_trace_run::execute::Memory;
use gpumodel_trace_run::sass::{Code, disassemble};

use crate::pointers::{bytes, get, number, pointer, put, text};
use crate::state::{Loaded, ModuleSlot, State, code, fail, memory, state};

/// What the compiler passes of a fat binary.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const c_void,
    more: *const c_void,
}

const WRAPPER_MAGIC: u32 = 0x4662_43b1;

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut c_void {
    let mut state = state();
    let fat = get(wrapper.cast::<Wrapper>()).filter(|one| one.magic == WRAPPER_MAGIC);
    let length = fat.and_then(|one| total_bytes(&bytes(one.data, 16)));
    let (Some(fat), Some(length)) = (fat, length) else {
        fail(&state.folder, "the program's fat binary is of a kind that is not known");
    };
    let fat = bytes(fat.data, length);
    state.modules.push(ModuleSlot { fat, loaded: None, constants: Vec::new() });
    // The handle is the number of the module, from 1 on.
    pointer(state.modules.len() as u64)
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_: *mut c_void) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(_: *mut c_void) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(_: *mut c_void) -> c_char {
    1
}

fn module_of(handle: *mut c_void) -> usize {
    usize::try_from(number(handle)).unwrap_or(0).saturating_sub(1)
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFunction(
    handle: *mut c_void,
    host: *const c_void,
    _: *mut c_char,
    name: *const c_char,
) {
    let entry = (module_of(handle), text(name));
    state().functions.insert(number(host), entry);
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar(
    handle: *mut c_void,
    host: *mut c_void,
    _: *mut c_char,
    name: *const c_char,
) {
    let entry = (module_of(handle), text(name));
    state().variables.insert(number(host), entry);
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterManagedVar(
    handle: *mut c_void,
    host: *mut *mut c_void,
    _: *mut c_char,
    name: *const c_char,
    _: c_int,
    _: usize,
    _: c_int,
    _: c_int,
) {
    let (module, name) = (module_of(handle), text(name));
    let mut state = state();
    let found = state.variable_place(module, &name);
    match found {
        Some((address, _)) => {
            put(host, pointer(address));
            let shadow = number(host.cast_const().cast());
            state.variables.insert(shadow, (module, name));
        }
        None => fail(&state.folder, &format!("the managed variable `{name}` is not in its module")),
    }
}

impl State {
    /// The module of that number, read now if it was not yet; ends the process when it cannot
    /// be read.
    pub(crate) fn load(&mut self, number: usize) -> Arc<Loaded> {
        let Some(slot) = self.modules.get(number) else {
            fail(&self.folder, "the program uses a module that it did not register");
        };
        if let Some(loaded) = &slot.loaded {
            return Arc::clone(loaded);
        }
        let read = self.read(&slot.fat);
        let loaded = Arc::new(read.unwrap_or_else(|what| fail(&self.folder, &what.to_string())));
        let slot = &mut self.modules[number];
        slot.constants.clone_from(&loaded.module.constants);
        slot.loaded = Some(Arc::clone(&loaded));
        loaded
    }

    fn read(&self, fat: &[u8]) -> Result<Loaded, RunError> {
        let all = entries(fat)?;
        let entry = choose(&all, self.request.device.sm)?;
        let cubin = entry.unpacked()?;
        let size = Module::global_bytes(&cubin)?;
        let base = memory().allocate(size);
        let base = base.ok_or_else(|| RunError::code("no memory for the program's variables"))?;
        let module = Module::read(&cubin, base)?;
        let text = disassemble(&self.request.nvdisasm, &module.image, entry.sm, &self.folder)?;
        let code = Code::read(&text, &module.functions)?;
        memory().write(base, &module.globals);
        Ok(Loaded { module, code, sm: entry.sm, base })
    }

    /// Where a variable in device memory lies, and its bytes.
    pub(crate) fn variable_place(&mut self, module: usize, name: &str) -> Option<(u64, u64)> {
        let loaded = self.load(module);
        let found = loaded.module.variables.iter().find(|one| one.name == name)?;
        (!found.constant).then_some((loaded.base + found.offset, found.bytes))
    }
}

/// The result of a function that is not supported.
pub(crate) const UNSUPPORTED: u32 = code::NOT_SUPPORTED;
