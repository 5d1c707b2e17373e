// A backend that costs almost nothing: it copies INPUTn to OUTPUTn and reports its own time.
#include <string.h>
#include <time.h>

#include "triton/core/tritonbackend.h"

#define CHECK(call)                        \
  do {                                     \
    TRITONSERVER_Error* failure = (call);  \
    if (failure != NULL) return failure;   \
  } while (0)

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static TRITONSERVER_Error* copy(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response,
                                const char* from, const char* to) {
  TRITONBACKEND_Input* input;
  TRITONBACKEND_Output* output;
  TRITONSERVER_DataType datatype;
  const int64_t* shape;
  uint32_t dims, buffers;
  uint64_t size;
  const void* source;
  void* target;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t type_id = 0;
  CHECK(TRITONBACKEND_RequestInput(request, from, &input));
  CHECK(TRITONBACKEND_InputProperties(input, NULL, &datatype, &shape, &dims, &size, &buffers));
  CHECK(TRITONBACKEND_ResponseOutput(response, &output, to, datatype, shape, dims));
  CHECK(TRITONBACKEND_OutputBuffer(output, &target, size, &type, &type_id));
  CHECK(TRITONBACKEND_InputBuffer(input, 0, &source, &size, &type, &type_id));
  memcpy(target, source, size);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t count) {
  const uint64_t start = now_ns();
  for (uint32_t i = 0; i < count; ++i) {
    TRITONBACKEND_Response* response;
    CHECK(TRITONBACKEND_ResponseNew(&response, requests[i]));
    CHECK(copy(requests[i], response, "INPUT0", "OUTPUT0"));
    CHECK(copy(requests[i], response, "INPUT1", "OUTPUT1"));
    CHECK(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
  }
  const uint64_t end = now_ns();
  for (uint32_t i = 0; i < count; ++i) {
    CHECK(TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], true, start, start,
                                                      end, end));
    CHECK(TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
  }
  return NULL;
}
