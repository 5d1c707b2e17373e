// Response caches: libtritoncache_NAME.so. A response is one buffer, which `cache.py` packs.
#include "triton/core/tritoncache.h"

#include "edge.h"

using tritonpy::error;
using tritonpy::find;
using tritonpy::guarded;
using tritonpy::status;

struct TRITONCACHE_CacheEntry {
  std::vector<std::pair<void*, size_t>> buffers;
};

// Copies a response from Python's parts to the cache's buffer, or from there to memory.
struct TRITONCACHE_Allocator {
  std::vector<std::pair<const void*, size_t>> parts;  // of an insertion
  bool inserts = false;
  bool copied = false;
  tritonpy::Memory memory;  // of a lookup
  size_t size = 0;
};

namespace {

struct CacheLibrary {
  TRITONSERVER_Error* (*initialize)(TRITONCACHE_Cache**, const char*) = nullptr;
  TRITONSERVER_Error* (*finalize)(TRITONCACHE_Cache*) = nullptr;
  TRITONSERVER_Error* (*lookup)(TRITONCACHE_Cache*, const char*, TRITONCACHE_CacheEntry*,
                                TRITONCACHE_Allocator*) = nullptr;
  TRITONSERVER_Error* (*insert)(TRITONCACHE_Cache*, const char*, TRITONCACHE_CacheEntry*,
                                TRITONCACHE_Allocator*) = nullptr;
  TRITONCACHE_Cache* cache = nullptr;
};

TRITONSERVER_Error* invalid(const char* text) {
  return error(TRITONSERVER_ERROR_INVALID_ARG, text);
}

TRITONSERVER_Error* check_host_memory(const TRITONSERVER_BufferAttributes* attributes) {
  if (attributes->memory_type == TRITONSERVER_MEMORY_GPU) {
    return invalid("Only buffers in CPU memory are allowed in cache currently");
  }
  return nullptr;
}

TRITONSERVER_Error* copy(TRITONCACHE_Allocator* allocator, TRITONCACHE_CacheEntry* entry) {
  if (entry->buffers.size() != 1) {
    return error(TRITONSERVER_ERROR_INTERNAL,
                 "Expected number of responses in cache does not match. Expected: 1, received: " +
                     std::to_string(entry->buffers.size()));
  }
  auto [base, size] = entry->buffers[0];
  if (!base) return error(TRITONSERVER_ERROR_INTERNAL, "buffer was nullptr");
  if (allocator->inserts) {
    if (size != allocator->size) {
      return error(TRITONSERVER_ERROR_INTERNAL,
                   "Serialized buffer size does not match. Expected: " +
                       std::to_string(allocator->size) + ", received: " + std::to_string(size));
    }
    char* to = static_cast<char*>(base);
    for (const auto& [data, length] : allocator->parts) {
      if (length) memcpy(to, data, length);
      to += length;
    }
  } else {
    allocator->memory = tritonpy::allocate(size);
    if (!allocator->memory) {
      return error(TRITONSERVER_ERROR_INTERNAL, "out of memory for a cached response");
    }
    memcpy(allocator->memory.get(), base, size);
    allocator->size = size;
  }
  allocator->copied = true;
  return nullptr;
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONCACHE_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONCACHE_API_VERSION_MAJOR;
  *minor = TRITONCACHE_API_VERSION_MINOR;
  return nullptr;
}

TRITONSERVER_Error* TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry* entry,
                                                      size_t* count) {
  if (!entry) return invalid("entry was nullptr");
  *count = entry->buffers.size();
  return nullptr;
}

TRITONSERVER_Error* TRITONCACHE_CacheEntryAddBuffer(
    TRITONCACHE_CacheEntry* entry, void* base, TRITONSERVER_BufferAttributes* buffer_attributes) {
  if (!entry || !base || !buffer_attributes) return invalid("entry, base, or attrs was nullptr");
  if (!buffer_attributes->byte_size) return invalid("Buffer byte size was zero");
  if (TRITONSERVER_Error* failure = check_host_memory(buffer_attributes)) return failure;
  entry->buffers.emplace_back(base, buffer_attributes->byte_size);
  return nullptr;
}

TRITONSERVER_Error* TRITONCACHE_CacheEntryGetBuffer(
    TRITONCACHE_CacheEntry* entry, size_t index, void** base,
    TRITONSERVER_BufferAttributes* buffer_attributes) {
  if (!entry || !base || !buffer_attributes) return invalid("entry, base, or attrs was nullptr");
  if (index >= entry->buffers.size()) return invalid("index was greater than count");
  *base = entry->buffers[index].first;
  *buffer_attributes = {};
  buffer_attributes->byte_size = entry->buffers[index].second;
  return nullptr;
}

TRITONSERVER_Error* TRITONCACHE_CacheEntrySetBuffer(
    TRITONCACHE_CacheEntry* entry, size_t index, void* new_base,
    TRITONSERVER_BufferAttributes* buffer_attributes) {
  if (!entry) return invalid("entry was nullptr");
  if (index >= entry->buffers.size()) return invalid("index was greater than count");
  if (buffer_attributes) {
    if (TRITONSERVER_Error* failure = check_host_memory(buffer_attributes)) return failure;
    entry->buffers[index].second = buffer_attributes->byte_size;
  }
  entry->buffers[index].first = new_base;
  return nullptr;
}

TRITON_HOST TRITONSERVER_Error* TRITONCACHE_Copy(TRITONCACHE_Allocator* allocator,
                                                 TRITONCACHE_CacheEntry* entry) {
  if (!allocator || !entry) return invalid("allocator or entry was nullptr");
  return copy(allocator, entry);
}

// Load a library and initialize its cache; `owner` owns the metrics that it makes.
TRITON_HOST int64_t tritonpy_cache_open(const char* path, const char* config, int64_t owner,
                                        void** result) {
  tritonpy::ModelScope scope(owner);
  void* library = nullptr;
  if (TRITONSERVER_Error* failure = tritonpy::open_library(path, &library)) return status(failure);
  auto cache = std::make_unique<CacheLibrary>();
  find(library, "TRITONCACHE_CacheInitialize", &cache->initialize);
  find(library, "TRITONCACHE_CacheFinalize", &cache->finalize);
  find(library, "TRITONCACHE_CacheLookup", &cache->lookup);
  find(library, "TRITONCACHE_CacheInsert", &cache->insert);
  const std::pair<const char*, bool> required[] = {
      {"Initialize", cache->initialize},
      {"Finalize", cache->finalize},
      {"Lookup", cache->lookup},
      {"Insert", cache->insert},
  };
  for (const auto& [name, exists] : required) {
    if (exists) continue;
    return status(error(TRITONSERVER_ERROR_NOT_FOUND,
                        std::string("unable to find required entrypoint 'TRITONCACHE_Cache") +
                            name + "' in shared library: " + path));
  }
  const int64_t code = status(guarded("TRITONCACHE_CacheInitialize", [&] {
    return cache->initialize(&cache->cache, config);
  }));
  if (code >= 0) return code;
  if (!cache->cache) {
    return status(
        error(TRITONSERVER_ERROR_INTERNAL, "Failed to initialize cache implementation"));
  }
  *result = cache.release();
  return -1;
}

// Look up a response; on success, the caller frees the memory.
TRITON_HOST int64_t tritonpy_cache_lookup(void* handle, const char* key, void** memory,
                                          int64_t* size) {
  const auto* cache = static_cast<CacheLibrary*>(handle);
  TRITONCACHE_CacheEntry entry;
  TRITONCACHE_Allocator allocator;
  const int64_t code = status(guarded("TRITONCACHE_CacheLookup", [&] {
    return cache->lookup(cache->cache, key, &entry, &allocator);
  }));
  if (code >= 0) return code;
  if (!allocator.copied) {
    return status(error(TRITONSERVER_ERROR_INTERNAL,
                        "the cache found a response but did not call TRITONCACHE_Copy"));
  }
  *memory = allocator.memory.release();
  *size = static_cast<int64_t>(allocator.size);
  return -1;
}

// Insert a response, the given parts in a row: count; address and size of each.
TRITON_HOST int64_t tritonpy_cache_insert(void* handle, const char* key, const int64_t* words) {
  const auto* cache = static_cast<CacheLibrary*>(handle);
  tritonpy::Reader reader(words, nullptr);
  TRITONCACHE_Allocator allocator;
  allocator.inserts = true;
  for (int64_t left = reader.word(); left > 0; --left) {
    const void* data = reader.pointer<const void*>();
    allocator.parts.emplace_back(data, static_cast<size_t>(reader.word()));
    allocator.size += allocator.parts.back().second;
  }
  TRITONCACHE_CacheEntry entry;
  entry.buffers.emplace_back(nullptr, allocator.size);
  return status(guarded("TRITONCACHE_CacheInsert", [&] {
    return cache->insert(cache->cache, key, &entry, &allocator);
  }));
}

TRITON_HOST int64_t tritonpy_cache_close(void* handle) {
  std::unique_ptr<CacheLibrary> cache(static_cast<CacheLibrary*>(handle));
  return status(
      guarded("TRITONCACHE_CacheFinalize", [&] { return cache->finalize(cache->cache); }));
}

}  // extern "C"
