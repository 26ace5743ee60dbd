#pragma once
// Exception types: an error of the caller, an unsupported request, or a defect of the library.
#include <stdexcept>
#include <string>

namespace tn {

/// What went wrong with a user's call. The Python binding maps each kind to the matching builtin
/// exception.
enum class Fault { value, type, index, memory };

/// Base of every error the library throws. `what()` is the whole text: message, place and hint.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An error that the caller can fix: wrong shapes, types, axes, files.
class UserError : public Error {
 public:
  UserError(Fault fault, const std::string& text) : Error(text), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

/// A valid request that is not implemented; the text says what to do instead.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// A defect of the library itself.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace tn
