/* A stand-in for CUDA's driver, on the host's memory: streams do at once what is queued on them. It writes down what connections
 * queue, and lacks what WARPWIRE_STAND_IN_LACKS names: "batches" of words, or "words" altogether. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_SUPPORTED = 801 };

static int lacks(const char *what) {
    const char *lacking = getenv("WARPWIRE_STAND_IN_LACKS");
    return lacking && strcmp(lacking, what) == 0;
}

static void note(const char *what, uint64_t first, uint64_t second) {
    const char *path = getenv("WARPWIRE_STAND_IN_LOG");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (file < 0) return;
    dprintf(file, "%s %llu %llu\n", what, (unsigned long long)first, (unsigned long long)second);
    close(file);
}

int cuInit(unsigned flags) { return flags == 0 ? SUCCESS : INVALID_VALUE; }
int cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
int cuDeviceGetCount(int *count) { *count = 1; return SUCCESS; }
int cuDeviceGet(int *device, int number) { *device = number; return SUCCESS; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 1: *value = 1024; break;  /* threads of a block */
    case 5: *value = 65535; break; /* blocks of a grid */
    case 75: *value = 9; break;    /* compute capability 9. */
    case 76: *value = 0; break;    /* ... 0 */
    case 115: *value = 0; break;   /* memory pools */
    default: *value = 1;
    }
    return SUCCESS;
}
int cuDeviceGetName(char *name, int bytes, int device) {
    (void)device;
    snprintf(name, (size_t)bytes, "stand-in");
    return SUCCESS;
}
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) { (void)device; memset(uuid, 7, 16); return SUCCESS; }
int cuDeviceGetPCIBusId(char *text, int bytes, int device) {
    (void)device;
    snprintf(text, (size_t)bytes, "0000:01:00.0");
    return SUCCESS;
}

static char context;
static __thread void *current;
int cuDevicePrimaryCtxRetain(void **made, int device) { (void)device; *made = &context; return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return SUCCESS; }
int cuCtxGetCurrent(void **now) { *now = current; return SUCCESS; }
int cuCtxSetCurrent(void *now) { current = now; return SUCCESS; }
int cuCtxPushCurrent_v2(void *now) { current = now; return SUCCESS; }
int cuCtxPopCurrent_v2(void **then) { *then = current; current = NULL; return SUCCESS; }

int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = malloc(1); return SUCCESS; }
int cuStreamDestroy_v2(void *stream) { free(stream); return SUCCESS; }
int cuStreamSynchronize(void *stream) { (void)stream; return SUCCESS; }
int cuStreamQuery(void *stream) { (void)stream; return SUCCESS; }
int cuEventCreate(void **event, unsigned flags) { (void)flags; *event = malloc(1); return SUCCESS; }
int cuEventRecord(void *event, void *stream) { (void)event; (void)stream; return SUCCESS; }
int cuEventQuery(void *event) { (void)event; return SUCCESS; }
int cuEventSynchronize(void *event) { (void)event; return SUCCESS; }
int cuEventDestroy_v2(void *event) { free(event); return SUCCESS; }

static void *pages(size_t bytes) { return aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095); }
int cuMemAlloc_v2(uint64_t *address, size_t bytes) { *address = (uint64_t)pages(bytes); return SUCCESS; }
int cuMemFree_v2(uint64_t address) { free((void *)address); return SUCCESS; }
int cuMemHostAlloc(void **host, size_t bytes, unsigned flags) { (void)flags; *host = pages(bytes); return SUCCESS; }
int cuMemHostGetDevicePointer_v2(uint64_t *address, void *host, unsigned flags) {
    (void)flags;
    *address = (uint64_t)host;
    return SUCCESS;
}
int cuMemFreeHost(void *host) { free(host); return SUCCESS; }
int cuIpcGetMemHandle(unsigned char *handle, uint64_t address) {
    memset(handle, 0, 64);
    memcpy(handle, &address, sizeof address);
    return SUCCESS;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    (void)stream;
    memcpy((void *)to, from, bytes);
    return SUCCESS;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    (void)stream;
    memcpy(to, (void *)from, bytes);
    return SUCCESS;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
    (void)stream;
    memset((void *)to, value, bytes);
    return SUCCESS;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    (void)stream;
    note("copy", to, bytes);
    memcpy((void *)to, (void *)from, bytes);
    return SUCCESS;
}
int cuStreamWriteValue64_v2(void *stream, uint64_t address, uint64_t value, unsigned flags) {
    (void)stream;
    if (lacks("words")) return NOT_SUPPORTED;
    if (flags != 0) return INVALID_VALUE;
    note("word", address, value);
    *(volatile uint64_t *)address = value;
    return SUCCESS;
}
/* CUstreamBatchMemOpParams, of which this is the form that sets 64 bits. */
typedef struct { int operation; uint64_t address, value; unsigned flags; uint64_t alias, reserved; } write_value;
int cuStreamBatchMemOp_v2(void *stream, unsigned count, write_value *writes, unsigned flags) {
    (void)stream;
    if (lacks("words") || lacks("batches")) return NOT_SUPPORTED;
    if (flags != 0 || count != 2) return INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (writes[i].operation != 5 || writes[i].flags != 0) return INVALID_VALUE;
        *(volatile uint64_t *)writes[i].address = writes[i].value;
    }
    note("words", writes[0].address, writes[1].address);
    return SUCCESS;
}

int cuGetErrorName(int code, const char **text) { (void)code; *text = "CUDA_ERROR_OF_THE_STAND_IN"; return SUCCESS; }
int cuGetErrorString(int code, const char **text) { (void)code; *text = "the stand-in does not do it"; return SUCCESS; }
