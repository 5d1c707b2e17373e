// What the functions that Python calls share: words and texts, errors, and libraries.
#pragma once

#include <dlfcn.h>

#include <exception>

#include "objects.h"

namespace tritonpy {

// The message of the last error on this thread.
extern thread_local std::string message;

// Return -1 for success, or the code of the error; its message is kept for the caller.
inline int64_t status(TRITONSERVER_Error* error) {
  if (!error) return -1;
  const int64_t code = error->code;
  message = error->message;
  delete error;
  return code;
}

// Call a function of a backend; an exception becomes an error.
template <typename Function>
TRITONSERVER_Error* guarded(const char* name, Function function) {
  try {
    return function();
  } catch (const std::exception& exception) {
    return error(TRITONSERVER_ERROR_INTERNAL,
                           std::string(name) + " threw an exception: " + exception.what());
  } catch (...) {
    return error(TRITONSERVER_ERROR_INTERNAL,
                           std::string(name) + " threw an exception of unknown type");
  }
}

// Open a library, whose functions stay: a library is never closed.
TRITONSERVER_Error* open_library(const char* path, void** library);

template <typename Function>
void find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
}

// Reads words and texts that Python wrote.
class Reader {
 public:
  Reader(const int64_t* words, const char* text) : words_(words), text_(text) {}
  int64_t word() { return *words_++; }
  template <typename T>
  T pointer() {
    return reinterpret_cast<T>(static_cast<intptr_t>(word()));
  }
  // The place of an input's data: an address, or -1 - offset in the texts.
  const void* data() {
    const int64_t place = word();
    if (place < 0) return text_ + (-1 - place);
    return reinterpret_cast<const void*>(static_cast<intptr_t>(place));
  }
  std::string text() {  // offset, length
    const int64_t offset = word();
    return std::string(text_ + offset, static_cast<size_t>(word()));
  }
  TensorSpec spec() {  // name, data type, number of dimensions, dimensions
    TensorSpec result;
    result.name = text();
    result.datatype = static_cast<TRITONSERVER_DataType>(word());
    const int64_t count = word();
    result.shape.assign(words_, words_ + count);
    words_ += count;
    return result;
  }
  void parameters(Parameters* parameters) {  // count; type, name, value in two words
    for (int64_t left = word(); left > 0; --left) {
      Parameter parameter;
      parameter.type = static_cast<TRITONSERVER_ParameterType>(word());
      parameter.name = text();
      const int64_t first = word(), second = word();
      switch (parameter.type) {
        case TRITONSERVER_PARAMETER_INT:
          parameter.integer = first;
          break;
        case TRITONSERVER_PARAMETER_BOOL:
          parameter.boolean = first;
          break;
        case TRITONSERVER_PARAMETER_DOUBLE:
          memcpy(&parameter.real, &first, sizeof first);
          break;
        default:
          parameter.text.assign(text_ + first, static_cast<size_t>(second));
      }
      parameters->push_back(std::move(parameter));
    }
  }

 private:
  const int64_t* words_;
  const char* text_;
};

// Writes events for Python. What does not fit is counted but not written.
class Writer {
 public:
  Writer(int64_t* words, int64_t word_capacity, char* bytes, int64_t byte_capacity)
      : words_(words),
        word_capacity_(word_capacity),
        bytes_(bytes),
        byte_capacity_(byte_capacity) {}

  void word(int64_t value) {
    if (word_count < word_capacity_) words_[word_count] = value;
    ++word_count;
  }
  void text(const std::string& value) { bytes(value.data(), value.size(), 1); }
  void bytes(const void* data, size_t size, int64_t alignment) {  // offset, length
    byte_count = (byte_count + alignment - 1) / alignment * alignment;
    if (size && byte_count + static_cast<int64_t>(size) <= byte_capacity_) {
      memcpy(bytes_ + byte_count, data, size);
    }
    word(byte_count);
    word(static_cast<int64_t>(size));
    byte_count += static_cast<int64_t>(size);
  }
  void spec(const TensorSpec& spec) {
    text(spec.name);
    word(spec.datatype);
    word(static_cast<int64_t>(spec.shape.size()));
    for (int64_t dim : spec.shape) word(dim);
  }
  void parameters(const Parameters& parameters) {
    word(static_cast<int64_t>(parameters.size()));
    for (const Parameter& parameter : parameters) {
      word(parameter.type);
      text(parameter.name);
      switch (parameter.type) {
        case TRITONSERVER_PARAMETER_INT:
          word(parameter.integer);
          word(0);
          break;
        case TRITONSERVER_PARAMETER_BOOL:
          word(parameter.boolean);
          word(0);
          break;
        case TRITONSERVER_PARAMETER_DOUBLE: {
          int64_t bits;
          memcpy(&bits, &parameter.real, sizeof bits);
          word(bits);
          word(0);
          break;
        }
        default:
          text(parameter.text);
      }
    }
  }
  bool fits() const { return word_count <= word_capacity_ && byte_count <= byte_capacity_; }
  void undo(int64_t words, int64_t bytes) {
    word_count = words;
    byte_count = bytes;
  }

  int64_t word_count = 0;
  int64_t byte_count = 0;

 private:
  int64_t* words_;
  int64_t word_capacity_;
  char* bytes_;
  int64_t byte_capacity_;
};

// tag, layout, flags, correlation id as number, as text (or length -1), timeout, id, trace context
// (or length -1), parameters; place and size of each input of the layout. The texts, in which inputs
// may be, live until the request is released.
TRITONBACKEND_Request* read_request(Reader* reader,
                                    const std::shared_ptr<TRITONBACKEND_ModelInstance>& instance);

}  // namespace tritonpy
