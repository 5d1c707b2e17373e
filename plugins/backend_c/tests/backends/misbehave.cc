// Breaks the rules of the interface in the way that the input IN selects.
#include <stdexcept>

extern "C" {
#include "common.h"
}

namespace {

enum Mode {
  kGood, kSendTwice, kTwoFinals, kNoFinal, kReleaseTwice, kSendLate, kThrow, kFailExecution,
  kNeverRelease, kDropResponse, kUseReleased, kCrash, kExit, kSlow, kReleaseFirst, kInvalidType,
  kWrongSize, kAsynchronous, kNeverAnswer, kDefer,
  kAnswerDeferred, kFailAfterDeferred,
};

TRITONBACKEND_ResponseFactory* deferred = nullptr;

// Answer the request that kDefer left open, from the execution of another one.
void answer_deferred() {
  TRITONBACKEND_Response* response;
  IGNORE(TRITONBACKEND_ResponseNewFromFactory(&response, deferred));
  IGNORE(add_int(response, "OUT", kDefer, 1));
  IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, nullptr));
  IGNORE(TRITONBACKEND_ResponseFactoryDelete(deferred));
  deferred = nullptr;
}

void* answer_later(void* argument) {
  auto* factory = static_cast<TRITONBACKEND_ResponseFactory*>(argument);
  usleep(1000);
  TRITONBACKEND_Response* response;
  IGNORE(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
  IGNORE(add_int(response, "OUT", kAsynchronous, 1));
  IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, nullptr));
  IGNORE(TRITONBACKEND_ResponseFactoryDelete(factory));
  return nullptr;
}

TRITONBACKEND_Response* new_response(TRITONBACKEND_Request* request, int32_t value) {
  TRITONBACKEND_Response* response = nullptr;
  IGNORE(TRITONBACKEND_ResponseNew(&response, request));
  IGNORE(add_int(response, "OUT", value, 1));
  return response;
}

void release(TRITONBACKEND_Request* request) {
  IGNORE(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
}

// Handle one request in the selected way.
void misbehave(TRITONBACKEND_Request* request, int32_t mode) {
  TRITONBACKEND_ResponseFactory* factory = nullptr;
  TRITONBACKEND_Response* response = nullptr;
  switch (mode) {
    case kSendTwice:
      response = new_response(request, mode);
      IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, nullptr));
      IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, nullptr));
      return release(request);
    case kTwoFinals:
      IGNORE(TRITONBACKEND_ResponseSend(new_response(request, mode), FINAL, nullptr));
      IGNORE(TRITONBACKEND_ResponseSend(new_response(request, mode), FINAL, nullptr));
      return release(request);
    case kNoFinal:
      return release(request);
    case kReleaseTwice:
      IGNORE(answer_int(request, mode, 1));
      release(request);
      return release(request);
    case kSendLate:
      IGNORE(TRITONBACKEND_ResponseFactoryNew(&factory, request));
      IGNORE(answer_int(request, mode, 1));
      release(request);
      IGNORE(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
      IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, nullptr));
      IGNORE(TRITONBACKEND_ResponseFactoryDelete(factory));
      return;
    case kNeverRelease:
      IGNORE(answer_int(request, mode, 1));
      return;
    case kDropResponse:
      IGNORE(TRITONBACKEND_ResponseDelete(new_response(request, mode)));
      return release(request);
    case kUseReleased: {
      IGNORE(answer_int(request, mode, 1));
      release(request);
      IGNORE(TRITONBACKEND_ResponseNew(&response, request));
      uint32_t count = 9;
      IGNORE(TRITONBACKEND_RequestInputCount(request, &count));
      return;
    }
    case kCrash:
      abort();
    case kExit:
      _exit(3);
    case kSlow:
      IGNORE(answer_int(request, mode, 1));
      release(request);
      usleep(300000);
      return;
    case kReleaseFirst:
      IGNORE(TRITONBACKEND_ResponseFactoryNew(&factory, request));
      release(request);
      IGNORE(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
      IGNORE(add_int(response, "OUT", mode, 1));
      IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, nullptr));
      IGNORE(TRITONBACKEND_ResponseFactoryDelete(factory));
      return;
    case kInvalidType: {
      IGNORE(TRITONBACKEND_ResponseNew(&response, request));
      const int64_t shape[1] = {1};
      TRITONBACKEND_Output* output;
      IGNORE(TRITONBACKEND_ResponseOutput(response, &output, "OUT",
                                          static_cast<TRITONSERVER_DataType>(99), shape, 1));
      IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, nullptr));
      return release(request);
    }
    case kWrongSize: {
      IGNORE(TRITONBACKEND_ResponseNew(&response, request));
      const int64_t shape[1] = {5};
      TRITONBACKEND_Output* output;
      IGNORE(TRITONBACKEND_ResponseOutput(response, &output, "OUT", TRITONSERVER_TYPE_INT32, shape,
                                          1));
      void* buffer;
      TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
      int64_t type_id = 0;
      IGNORE(TRITONBACKEND_OutputBuffer(output, &buffer, 3, &type, &type_id));
      memset(buffer, 1, 3);
      IGNORE(TRITONBACKEND_ResponseSend(response, FINAL, nullptr));
      return release(request);
    }
    case kAsynchronous: {
      IGNORE(TRITONBACKEND_ResponseFactoryNew(&factory, request));
      release(request);
      pthread_t thread;
      pthread_create(&thread, nullptr, answer_later, factory);
      pthread_detach(thread);
      return;
    }
    case kNeverAnswer:
      return;
    case kDefer:
      IGNORE(TRITONBACKEND_ResponseFactoryNew(&deferred, request));
      return release(request);
    case kAnswerDeferred:
      answer_deferred();
      IGNORE(TRITONBACKEND_ResponseFactoryNew(&deferred, request));
      return release(request);
    default:
      IGNORE(answer_int(request, mode, 1));
      release(request);
  }
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance*,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  for (uint32_t i = 0; i < request_count; ++i) {
    int32_t mode = 0;
    IGNORE(read_int(requests[i], "IN", &mode));
    if (mode == kThrow) throw std::runtime_error("out of range");
    if (mode == kFailAfterDeferred) answer_deferred();
    if (mode == kFailExecution || mode == kFailAfterDeferred) {
      return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "not now");
    }
    misbehave(requests[i], mode);
  }
  return nullptr;
}

}  // extern "C"
