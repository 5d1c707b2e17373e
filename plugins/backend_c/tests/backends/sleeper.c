// Sleeps IN milliseconds, and answers with how many instances slept at the same time.
#include <stdatomic.h>

#include "common.h"

static atomic_int sleeping;

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  const char* name;
  CHECK(TRITONBACKEND_BackendName(backend, &name));
  if (strcmp(name, "blocking") == 0) {
    CHECK(TRITONBACKEND_BackendSetExecutionPolicy(backend,
                                                  TRITONBACKEND_EXECUTION_DEVICE_BLOCKING));
  }
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  (void)instance;
  int most = ++sleeping;
  for (uint32_t i = 0; i < request_count; ++i) {
    int32_t milliseconds = 0;
    IGNORE(read_int(requests[i], "IN", &milliseconds));
    for (int32_t slept = 0; slept < milliseconds; ++slept) {
      usleep(1000);
      if (sleeping > most) most = sleeping;
    }
    IGNORE(answer_int(requests[i], most, 1));
    IGNORE(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  --sleeping;
  return NULL;
}
