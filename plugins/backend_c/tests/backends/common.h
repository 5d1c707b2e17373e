// What the backends of the tests share.
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "triton/core/tritonbackend.h"

#define CHECK(call)                              \
  do {                                           \
    TRITONSERVER_Error* check_error = (call);    \
    if (check_error != NULL) return check_error; \
  } while (0)

// Ignore an error that a test expects or does not look at.
#define IGNORE(call) TRITONSERVER_ErrorDelete(call)

#define FINAL TRITONSERVER_RESPONSE_COMPLETE_FINAL
#define RELEASE_ALL TRITONSERVER_REQUEST_RELEASE_ALL

static inline uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void log_line(const char* text) {
  IGNORE(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, __FILE__, __LINE__, text));
}

// Read the first element of an INT32 input.
static inline TRITONSERVER_Error* read_int(TRITONBACKEND_Request* request, const char* name,
                                           int32_t* value) {
  TRITONBACKEND_Input* input;
  CHECK(TRITONBACKEND_RequestInput(request, name, &input));
  const void* data;
  uint64_t size;
  TRITONSERVER_MemoryType type;
  int64_t type_id;
  CHECK(TRITONBACKEND_InputBuffer(input, 0, &data, &size, &type, &type_id));
  if (size < sizeof *value) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "the input is too short");
  }
  memcpy(value, data, sizeof *value);
  return NULL;
}

// Add an INT32 output with one element and the given number of dimensions of size 1.
static inline TRITONSERVER_Error* add_int(TRITONBACKEND_Response* response, const char* name,
                                          int32_t value, uint32_t dims) {
  const int64_t shape[2] = {1, 1};
  TRITONBACKEND_Output* output;
  CHECK(TRITONBACKEND_ResponseOutput(response, &output, name, TRITONSERVER_TYPE_INT32, shape,
                                     dims));
  void* buffer;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t type_id = 0;
  CHECK(TRITONBACKEND_OutputBuffer(output, &buffer, sizeof value, &type, &type_id));
  memcpy(buffer, &value, sizeof value);
  return NULL;
}

// Send the final response with one output OUT.
static inline TRITONSERVER_Error* answer_int(TRITONBACKEND_Request* request, int32_t value,
                                             uint32_t dims) {
  TRITONBACKEND_Response* response;
  CHECK(TRITONBACKEND_ResponseNew(&response, request));
  CHECK(add_int(response, "OUT", value, dims));
  return TRITONBACKEND_ResponseSend(response, FINAL, NULL);
}
