// The general part of TRITONSERVER: errors, types, messages, parameters, buffers and logs.
#include "objects.h"

using tritonpy::error;
using tritonpy::Event;
using tritonpy::Host;

namespace {

struct DataType {
  const char* name;
  uint32_t size;
};
const DataType kDataTypes[] = {
    {"<invalid>", 0}, {"BOOL", 1},  {"UINT8", 1}, {"UINT16", 2}, {"UINT32", 4},
    {"UINT64", 8},    {"INT8", 1},  {"INT16", 2}, {"INT32", 4},  {"INT64", 8},
    {"FP16", 2},      {"FP32", 4},  {"FP64", 8},  {"BYTES", 0},  {"BF16", 2},
};

template <size_t N>
const char* name_of(const char* const (&names)[N], int value, const char* other) {
  return value >= 0 && value < static_cast<int>(N) ? names[value] : other;
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONSERVER_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONSERVER_API_VERSION_MAJOR;
  *minor = TRITONSERVER_API_VERSION_MINOR;
  return nullptr;
}

const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype) {
  return datatype >= 0 && datatype <= TRITONSERVER_TYPE_BF16 ? kDataTypes[datatype].name
                                                             : kDataTypes[0].name;
}

TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char* dtype) {
  for (int type = 1; type <= TRITONSERVER_TYPE_BF16; ++type) {
    if (strcmp(kDataTypes[type].name, dtype) == 0) return static_cast<TRITONSERVER_DataType>(type);
  }
  return TRITONSERVER_TYPE_INVALID;
}

uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype) {
  return datatype >= 0 && datatype <= TRITONSERVER_TYPE_BF16 ? kDataTypes[datatype].size : 0;
}

const char* TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype) {
  static const char* const names[] = {"CPU", "CPU_PINNED", "GPU"};
  return name_of(names, memtype, "<invalid>");
}

const char* TRITONSERVER_ParameterTypeString(TRITONSERVER_ParameterType paramtype) {
  static const char* const names[] = {"STRING", "INT", "BOOL", "DOUBLE", "BYTES"};
  return name_of(names, paramtype, "<invalid>");
}

const char* TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind) {
  static const char* const names[] = {"AUTO", "CPU", "GPU", "MODEL"};
  return name_of(names, kind, "<invalid>");
}

const char* TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_InferenceTraceLevel level) {
  switch (level) {
    case TRITONSERVER_TRACE_LEVEL_DISABLED:
      return "DISABLED";
    case TRITONSERVER_TRACE_LEVEL_MIN:
      return "MIN";
    case TRITONSERVER_TRACE_LEVEL_MAX:
      return "MAX";
    case TRITONSERVER_TRACE_LEVEL_TIMESTAMPS:
      return "TIMESTAMPS";
    case TRITONSERVER_TRACE_LEVEL_TENSORS:
      return "TENSORS";
  }
  return "<unknown>";
}

const char* TRITONSERVER_InferenceTraceActivityString(
    TRITONSERVER_InferenceTraceActivity activity) {
  static const char* const names[] = {
      "REQUEST_START",        "QUEUE_START",          "COMPUTE_START",
      "COMPUTE_INPUT_END",    "COMPUTE_OUTPUT_START", "COMPUTE_END",
      "REQUEST_END",          "TENSOR_QUEUE_INPUT",   "TENSOR_BACKEND_INPUT",
      "TENSOR_BACKEND_OUTPUT", "CUSTOM_ACTIVITY"};
  return name_of(names, activity, "<unknown>");
}

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* msg) {
  return error(code, msg ? msg : "");
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }

TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) { return error->code; }

const char* TRITONSERVER_ErrorCodeString(TRITONSERVER_Error* error) {
  static const char* const names[] = {
      "Unknown",     "Internal",    "Not found",      "Invalid argument",
      "Unavailable", "Unsupported", "Already exists", "Cancelled"};
  return name_of(names, error->code, "<invalid code>");
}

const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->message.c_str(); }

bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level) {
  return level != TRITONSERVER_LOG_VERBOSE || Host::get().verbose;
}

TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char* filename,
                                            int line, const char* msg) {
  if (!TRITONSERVER_LogIsEnabled(level)) return nullptr;
  Event event{Event::log};
  event.owner = tritonpy::current_model();
  event.tag = level;
  event.flags = line;
  event.text = std::string(filename) + "\n" + msg;
  Host::get().push(std::move(event));
  return nullptr;
}

TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char* name,
                                                  TRITONSERVER_ParameterType type,
                                                  const void* value) {
  auto parameter = std::make_unique<TRITONSERVER_Parameter>();
  parameter->name = name;
  parameter->type = type;
  switch (type) {
    case TRITONSERVER_PARAMETER_STRING:
      parameter->text = static_cast<const char*>(value);
      break;
    case TRITONSERVER_PARAMETER_INT:
      parameter->integer = *static_cast<const int64_t*>(value);
      break;
    case TRITONSERVER_PARAMETER_BOOL:
      parameter->boolean = *static_cast<const bool*>(value);
      break;
    case TRITONSERVER_PARAMETER_DOUBLE:
      parameter->real = *static_cast<const double*>(value);
      break;
    default:
      return nullptr;
  }
  return parameter.release();
}

TRITONSERVER_Parameter* TRITONSERVER_ParameterBytesNew(const char* name, const void* byte_ptr,
                                                       uint64_t size) {
  auto parameter = std::make_unique<TRITONSERVER_Parameter>();
  parameter->name = name;
  parameter->type = TRITONSERVER_PARAMETER_BYTES;
  parameter->text.assign(static_cast<const char*>(byte_ptr), size);
  return parameter.release();
}

void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter* parameter) { delete parameter; }

TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message,
                                                              const char* base,
                                                              size_t byte_size) {
  *message = new TRITONSERVER_Message{std::string(base, byte_size)};
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  delete message;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** base, size_t* byte_size) {
  *base = message->text.c_str();
  *byte_size = message->text.size();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesNew(
    TRITONSERVER_BufferAttributes** buffer_attributes) {
  *buffer_attributes = new TRITONSERVER_BufferAttributes;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesDelete(
    TRITONSERVER_BufferAttributes* buffer_attributes) {
  delete buffer_attributes;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetMemoryTypeId(
    TRITONSERVER_BufferAttributes* buffer_attributes, int64_t memory_type_id) {
  buffer_attributes->memory_type_id = memory_type_id;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetMemoryType(
    TRITONSERVER_BufferAttributes* buffer_attributes, TRITONSERVER_MemoryType memory_type) {
  buffer_attributes->memory_type = memory_type;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetCudaIpcHandle(
    TRITONSERVER_BufferAttributes* buffer_attributes, void* cuda_ipc_handle) {
  buffer_attributes->cuda_ipc_handle = cuda_ipc_handle;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetByteSize(
    TRITONSERVER_BufferAttributes* buffer_attributes, size_t byte_size) {
  buffer_attributes->byte_size = byte_size;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesMemoryTypeId(
    TRITONSERVER_BufferAttributes* buffer_attributes, int64_t* memory_type_id) {
  *memory_type_id = buffer_attributes->memory_type_id;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesMemoryType(
    TRITONSERVER_BufferAttributes* buffer_attributes, TRITONSERVER_MemoryType* memory_type) {
  *memory_type = buffer_attributes->memory_type;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesCudaIpcHandle(
    TRITONSERVER_BufferAttributes* buffer_attributes, void** cuda_ipc_handle) {
  *cuda_ipc_handle = buffer_attributes->cuda_ipc_handle;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesByteSize(
    TRITONSERVER_BufferAttributes* buffer_attributes, size_t* byte_size) {
  *byte_size = buffer_attributes->byte_size;
  return nullptr;
}

// The functions that no backend needs.
#define UNSUPPORTED(name)                                                                  \
  TRITON_HOST TRITONSERVER_Error* name() {                                                 \
    return error(TRITONSERVER_ERROR_UNSUPPORTED, "tritonpy does not support " #name "()"); \
  }
#include "unsupported.inc"
#undef UNSUPPORTED

// Their names, one per line, for Python.
TRITON_HOST const char* tritonpy_unsupported() {
#define UNSUPPORTED(name) #name "\n"
  return
#include "unsupported.inc"
      ;
#undef UNSUPPORTED
}

}  // extern "C"
