// A decoupled model: sends 0 to IN-1 from a thread of its own, then ends without data. It stops
// early if the request is cancelled, and logs how many responses it sent.
#include "common.h"

struct Stream {
  TRITONBACKEND_ResponseFactory* factory;
  int32_t count;
};

static void* run(void* argument) {
  struct Stream* stream = argument;
  int32_t sent = 0;
  for (; sent < stream->count; ++sent) {
    bool cancelled = false;
    IGNORE(TRITONBACKEND_ResponseFactoryIsCancelled(stream->factory, &cancelled));
    if (cancelled) break;
    TRITONBACKEND_Response* response;
    IGNORE(TRITONBACKEND_ResponseNewFromFactory(&response, stream->factory));
    IGNORE(add_int(response, "OUT", sent, 1));
    IGNORE(TRITONBACKEND_ResponseSend(response, 0, NULL));
  }
  IGNORE(TRITONBACKEND_ResponseFactorySendFlags(stream->factory, FINAL));
  char line[64];
  snprintf(line, sizeof line, "sent %d of %d", sent, stream->count);
  log_line(line);
  IGNORE(TRITONBACKEND_ResponseFactoryDelete(stream->factory));
  free(stream);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  (void)instance;
  for (uint32_t i = 0; i < request_count; ++i) {
    struct Stream* stream = malloc(sizeof *stream);
    IGNORE(read_int(requests[i], "IN", &stream->count));
    IGNORE(TRITONBACKEND_ResponseFactoryNew(&stream->factory, requests[i]));
    IGNORE(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
    pthread_t thread;
    pthread_create(&thread, NULL, run, stream);
    pthread_detach(thread);
  }
  return NULL;
}
