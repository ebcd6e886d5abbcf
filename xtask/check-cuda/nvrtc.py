"""Compiles kernels with NVRTC, which needs no GPU: nvrtc.py LIBRARY KERNELS VARIANTS

LIBRARY is NVRTC's, whose folder must be in LD_LIBRARY_PATH, KERNELS a folder, and VARIANTS a file: a kernel and its
definitions in a line, such as "norm.cu BF16 DROPOUT=1". Prints how many were compiled, or what the compiler says of those
that fail; the exit status is then 1.
"""

import ctypes
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# The oldest architecture that is meant, with bfloat16, and the one that is measured.
ARCHITECTURES = ["sm_80", "sm_90"]


def failure(nvrtc, kernels, variant):
    """What is wrong with a variant; nothing if it compiles."""
    architecture, file, *definitions = variant.split()
    # As the program does it: what is common comes first. Messages count the lines of each file.
    parts = [f'#line 1 "{name}"\n{(kernels / name).read_text()}' for name in ("common.cuh", file)]
    options = ["--std=c++17", f"--gpu-architecture={architecture}"] + [f"-D{word}" for word in definitions]
    options = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = "\n".join(parts).encode()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, file.encode(), 0, None, None):
        return f"{variant}: NVRTC took no source"
    failed = nvrtc.nvrtcCompileProgram(program, len(options), options)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(1, size.value))
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return f"{variant}:\n{log.value.decode(errors='replace').strip()}" if failed else None


def main():
    library, kernels, variants = sys.argv[1:]
    nvrtc = ctypes.CDLL(library)
    lines = [line for line in Path(variants).read_text().splitlines() if not line.startswith("#")]
    variants = [f"{architecture} {line}" for architecture in ARCHITECTURES for line in lines]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = list(filter(None, pool.map(lambda variant: failure(nvrtc, Path(kernels), variant), variants)))
    print("\n\n".join(failures) if failures else len(variants))
    sys.exit(1 if failures else 0)


main()
