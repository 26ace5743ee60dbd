#pragma once
// Work that leaves the thread pool to others.
namespace tn {

/// While one lives, every parallel_for of this thread runs on this thread alone: work that nobody
/// waits for does not take the workers from work that somebody does.
class OnOwnThread {
 public:
  OnOwnThread();
  ~OnOwnThread();
  OnOwnThread(const OnOwnThread&) = delete;

 private:
  bool before_;
};

}  // namespace tn
