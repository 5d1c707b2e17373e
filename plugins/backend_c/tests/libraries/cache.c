// Keeps every response in a list, with a metric of their number. The key "refuse" of the
// configuration fails the start; "broken" makes lookups find nothing but succeed; with "no metrics"
// there is none.
#include "../backends/common.h"
#include "triton/core/tritoncache.h"

typedef struct Entry {
  struct Entry* next;
  char* key;
  size_t size;
  char data[];
} Entry;

typedef struct {
  pthread_mutex_t mutex;
  Entry* entries;
  int count;
  bool broken;
  TRITONSERVER_MetricFamily* family;
  TRITONSERVER_Metric* metric;
} Cache;

TRITONSERVER_Error* TRITONCACHE_CacheInitialize(TRITONCACHE_Cache** cache, const char* config) {
  uint32_t major, minor;
  CHECK(TRITONCACHE_ApiVersion(&major, &minor));
  if (major != TRITONCACHE_API_VERSION_MAJOR || minor < TRITONCACHE_API_VERSION_MINOR) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "another version");
  }
  if (strstr(config, "\"refuse\":\"yes\"") != NULL) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "the cache refuses");
  }
  Cache* made = (Cache*)calloc(1, sizeof(Cache));
  pthread_mutex_init(&made->mutex, NULL);
  made->broken = strstr(config, "broken") != NULL;
  *cache = (TRITONCACHE_Cache*)made;
  if (strstr(config, "no metrics") != NULL) return NULL;
  CHECK(TRITONSERVER_MetricFamilyNew(&made->family, TRITONSERVER_METRIC_KIND_GAUGE,
                                     "nv_cache_num_entries", "Number of responses"));
  return TRITONSERVER_MetricNew(&made->metric, made->family, NULL, 0);
}

TRITONSERVER_Error* TRITONCACHE_CacheFinalize(TRITONCACHE_Cache* cache) {
  Cache* ended = (Cache*)cache;
  while (ended->entries != NULL) {
    Entry* entry = ended->entries;
    ended->entries = entry->next;
    free(entry->key);
    free(entry);
  }
  IGNORE(TRITONSERVER_MetricDelete(ended->metric));
  IGNORE(TRITONSERVER_MetricFamilyDelete(ended->family));
  free(ended);
  return NULL;
}

static Entry* find(Cache* cache, const char* key) {
  Entry* entry = cache->entries;
  while (entry != NULL && strcmp(entry->key, key) != 0) entry = entry->next;
  return entry;
}

static TRITONSERVER_Error* lookup(Cache* cache, const char* key, TRITONCACHE_CacheEntry* entry,
                                  TRITONCACHE_Allocator* allocator) {
  if (cache->broken) return NULL;
  Entry* found = find(cache, key);
  if (found == NULL) return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_NOT_FOUND, "unknown key");
  TRITONSERVER_BufferAttributes* attributes;
  CHECK(TRITONSERVER_BufferAttributesNew(&attributes));
  CHECK(TRITONSERVER_BufferAttributesSetByteSize(attributes, found->size));
  TRITONSERVER_Error* error = TRITONCACHE_CacheEntryAddBuffer(entry, found->data, attributes);
  IGNORE(TRITONSERVER_BufferAttributesDelete(attributes));
  if (error != NULL) return error;
  return TRITONCACHE_Copy(allocator, entry);
}

static TRITONSERVER_Error* insert(Cache* cache, const char* key, TRITONCACHE_CacheEntry* entry,
                                  TRITONCACHE_Allocator* allocator) {
  if (find(cache, key) != NULL) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_ALREADY_EXISTS, "the key exists");
  }
  size_t count, size;
  CHECK(TRITONCACHE_CacheEntryBufferCount(entry, &count));
  void* base;
  TRITONSERVER_BufferAttributes* attributes;
  CHECK(TRITONSERVER_BufferAttributesNew(&attributes));
  CHECK(TRITONCACHE_CacheEntryGetBuffer(entry, count - 1, &base, attributes));
  CHECK(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
  IGNORE(TRITONSERVER_BufferAttributesDelete(attributes));
  Entry* added = (Entry*)malloc(sizeof(Entry) + size);
  added->key = strdup(key);
  added->size = size;
  TRITONSERVER_Error* error = TRITONCACHE_CacheEntrySetBuffer(entry, 0, added->data, NULL);
  if (error == NULL) error = TRITONCACHE_Copy(allocator, entry);
  added->next = cache->entries;
  cache->entries = added;
  ++cache->count;
  if (cache->metric != NULL) IGNORE(TRITONSERVER_MetricSet(cache->metric, cache->count));
  return error;
}

TRITONSERVER_Error* TRITONCACHE_CacheLookup(TRITONCACHE_Cache* cache, const char* key,
                                            TRITONCACHE_CacheEntry* entry,
                                            TRITONCACHE_Allocator* allocator) {
  Cache* used = (Cache*)cache;
  pthread_mutex_lock(&used->mutex);
  TRITONSERVER_Error* error = lookup(used, key, entry, allocator);
  pthread_mutex_unlock(&used->mutex);
  return error;
}

TRITONSERVER_Error* TRITONCACHE_CacheInsert(TRITONCACHE_Cache* cache, const char* key,
                                            TRITONCACHE_CacheEntry* entry,
                                            TRITONCACHE_Allocator* allocator) {
  Cache* used = (Cache*)cache;
  pthread_mutex_lock(&used->mutex);
  TRITONSERVER_Error* error = insert(used, key, entry, allocator);
  pthread_mutex_unlock(&used->mutex);
  return error;
}
