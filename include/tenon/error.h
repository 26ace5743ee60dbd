#pragma once
// Errors. The class tells who can fix the problem.
#include <stdexcept>
#include <string>

namespace tn {

/// What went wrong with a user's call. The Python binding maps each kind to the matching builtin
/// exception.
enum class Fault { value, type, index, memory };

/// The base class of all errors. `what()` is the whole text: message, source location and hint.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An error of the caller: wrong shapes, types, axes, files.
class UserError : public Error {
 public:
  UserError(Fault fault, const std::string& text) : Error(text), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

/// A valid request that is not implemented; the text names an alternative.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// A bug in the library.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace tn
