// Adds IN to the state of its sequence and answers with the total. With IN below 0 the state stays.
#include "common.h"

static TRITONSERVER_Error* add(TRITONBACKEND_Request* request) {
  int32_t value = 0, total = 0, start = 0;
  CHECK(read_int(request, "IN", &value));
  CHECK(read_int(request, "TOTAL_IN", &total));
  CHECK(read_int(request, "START", &start));
  uint64_t id = 0;
  uint32_t flags = 0;
  CHECK(TRITONBACKEND_RequestCorrelationId(request, &id));
  CHECK(TRITONBACKEND_RequestFlags(request, &flags));
  if (start) total = 0;
  if (value >= 0) {
    total += value;
    const int64_t shape[2] = {1, 1};
    TRITONBACKEND_State* state;
    CHECK(TRITONBACKEND_StateNew(&state, request, "TOTAL_OUT", TRITONSERVER_TYPE_INT32, shape, 2));
    void* buffer;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t type_id = 0;
    CHECK(TRITONBACKEND_StateBuffer(state, &buffer, sizeof total, &type, &type_id));
    memcpy(buffer, &total, sizeof total);
    CHECK(TRITONBACKEND_StateUpdate(state));
  }
  return answer_int(request, total, 2);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  (void)instance;
  for (uint32_t i = 0; i < request_count; ++i) {
    TRITONSERVER_Error* error = add(requests[i]);
    if (error != NULL) {
      TRITONBACKEND_Response* response;
      IGNORE(TRITONBACKEND_ResponseNew(&response, requests[i]));
      IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, error));
      TRITONSERVER_ErrorDelete(error);
    }
    IGNORE(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  return NULL;
}
