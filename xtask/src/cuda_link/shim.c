/* The half of the CUDA shim that is written in C: finds the driver at the first call of any of its functions.
 *
 * The other half, generated, has one trampoline for each function. A trampoline jumps to the address in its slot; an
 * empty slot brings it to warpwire_cuda_resolve, which fills it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* CUresult's values, by the driver API's manual. */
enum { SUCCESS = 0, STUB_LIBRARY = 34, NOT_FOUND = 500 };

extern const char *const warpwire_cuda_names[] __attribute__((visibility("hidden")));
extern void *warpwire_cuda_slots[] __attribute__((visibility("hidden")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *driver;

static void open_driver(void) { driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL); }

static int no_driver(void) { return STUB_LIBRARY; }
static int no_symbol(void) { return NOT_FOUND; }

/* A program prints an error by asking the driver for its text, also when the error is that there is no driver. */
static int describe(int error, const char **text) {
    (void)error;
    *text = "there is no CUDA driver on this machine: libcuda.so.1 was not found";
    return SUCCESS;
}

static int same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

/* Gives the address of a function by its index, and keeps it in the slot. Two threads may do so at once: both store the
 * same address. */
__attribute__((visibility("hidden"))) void *warpwire_cuda_resolve(size_t index) {
    const char *name = warpwire_cuda_names[index];
    void *address;
    pthread_once(&once, open_driver);
    if (driver) {
        address = dlsym(driver, name);
        if (!address) address = (void *)no_symbol;
    } else if (same(name, "cuGetErrorString") || same(name, "cuGetErrorName")) {
        address = (void *)describe;
    } else {
        address = (void *)no_driver;
    }
    __atomic_store_n(&warpwire_cuda_slots[index], address, __ATOMIC_RELEASE);
    return address;
}
