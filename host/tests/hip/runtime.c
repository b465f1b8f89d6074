/* A stand-in for the HIP runtime, on the host's memory: its launch copies the kernel's name and its arguments to where the
 * kernel would write, so that the test sees what arrived. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t from, to, count; uint32_t block_threads, grid_threads; } convert_args;

int hipInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int hipGetDeviceCount(int *count) { *count = 1; return 0; }
int hipSetDevice(int device) { return device == 0 ? 0 : 101; }
int hipModuleLoadData(void **module, const void *image) {
    /* The code object is an ELF file. */
    *module = memcmp(image, "\177ELF", 4) == 0 ? malloc(1) : NULL;
    return *module ? 0 : 200;
}
int hipModuleUnload(void *module) { free(module); return 0; }
int hipModuleGetFunction(void **function, void *module, const char *name) {
    *function = (void *)name;
    return module && strncmp(name, "warpwire_", 9) == 0 ? 0 : 500;
}
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **params, void **extra) {
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || stream || params) return 1;
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3) return 1;
    if (*(size_t *)extra[3] != sizeof(convert_args)) return 1;
    convert_args args = *(convert_args *)extra[1];
    if (args.block_threads != bx || args.grid_threads != gx * bx) return 1;
    if (strstr((char *)function, "f16_to")) {
        for (uint64_t i = 0; i < args.count; i++) ((uint8_t *)args.to)[i] = ((uint16_t *)args.from)[i] >> 8;
    } else {
        for (uint64_t i = 0; i < args.count; i++) ((uint16_t *)args.to)[i] = ((uint8_t *)args.from)[i] << 8;
    }
    return 0;
}
int hipMalloc(void **address, size_t bytes) { *address = bytes > 1 << 30 ? NULL : malloc(bytes); return *address ? 0 : 2; }
int hipFree(void *address) { free(address); return 0; }
int hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
    if (kind != 1 && kind != 2) return 21;
    memcpy(to, from, bytes);
    return 0;
}
int hipDeviceSynchronize(void) { return 0; }
const char *hipGetErrorName(int status) { return status == 2 ? "hipErrorOutOfMemory" : "hipErrorUnknown"; }
const char *hipGetErrorString(int status) { return status == 2 ? "out of memory" : "unknown"; }
