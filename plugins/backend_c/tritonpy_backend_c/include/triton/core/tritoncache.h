// The interface between the server and a response cache written in C or C++, as this package
// implements it.
//
// Names, types and values are those of Triton's interface (TRITONCACHE 0.1), so sources compile
// against either. The cache is a shared library named libtritoncache_NAME.so that defines all four
// functions below. Any thread may call them at any time.
#pragma once

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TRITONCACHE_API_VERSION_MAJOR 0
#define TRITONCACHE_API_VERSION_MINOR 1

typedef struct TRITONCACHE_Allocator TRITONCACHE_Allocator;
typedef struct TRITONCACHE_Cache TRITONCACHE_Cache;
typedef struct TRITONCACHE_CacheEntry TRITONCACHE_CacheEntry;

// What a cache defines. `config` is a JSON object of texts. A lookup adds the buffers of the entry
// and calls TRITONCACHE_Copy; an unknown key is TRITONSERVER_ERROR_NOT_FOUND. An insertion reads
// the sizes of the entry's buffers, sets buffers of its own and calls TRITONCACHE_Copy.

TRITON_PLUGIN TRITONSERVER_Error* TRITONCACHE_CacheInitialize(
    TRITONCACHE_Cache** cache, const char* config);
TRITON_PLUGIN TRITONSERVER_Error* TRITONCACHE_CacheFinalize(TRITONCACHE_Cache* cache);
TRITON_PLUGIN TRITONSERVER_Error* TRITONCACHE_CacheLookup(
    TRITONCACHE_Cache* cache, const char* key, TRITONCACHE_CacheEntry* entry,
    TRITONCACHE_Allocator* allocator);
TRITON_PLUGIN TRITONSERVER_Error* TRITONCACHE_CacheInsert(
    TRITONCACHE_Cache* cache, const char* key, TRITONCACHE_CacheEntry* entry,
    TRITONCACHE_Allocator* allocator);

// What the server defines.

TRITON_HOST TRITONSERVER_Error* TRITONCACHE_ApiVersion(uint32_t* major, uint32_t* minor);
TRITON_HOST TRITONSERVER_Error* TRITONCACHE_CacheEntryBufferCount(
    TRITONCACHE_CacheEntry* entry, size_t* count);
TRITON_HOST TRITONSERVER_Error* TRITONCACHE_CacheEntryAddBuffer(
    TRITONCACHE_CacheEntry* entry, void* base, TRITONSERVER_BufferAttributes* buffer_attributes);
TRITON_HOST TRITONSERVER_Error* TRITONCACHE_CacheEntryGetBuffer(
    TRITONCACHE_CacheEntry* entry, size_t index, void** base,
    TRITONSERVER_BufferAttributes* buffer_attributes);
TRITON_HOST TRITONSERVER_Error* TRITONCACHE_CacheEntrySetBuffer(
    TRITONCACHE_CacheEntry* entry, size_t index, void* new_base,
    TRITONSERVER_BufferAttributes* buffer_attributes);
TRITON_HOST TRITONSERVER_Error* TRITONCACHE_Copy(
    TRITONCACHE_Allocator* allocator, TRITONCACHE_CacheEntry* entry);

#ifdef __cplusplus
}
#endif
