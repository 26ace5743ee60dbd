#pragma once
// Work that leaves the thread pool to others.
namespace tn {

/// While one lives, every parallel_for of this thread runs on this thread alone: background work
/// does not take the workers from foreground work.
class OnOwnThread {
 public:
  OnOwnThread();
  ~OnOwnThread();
  OnOwnThread(const OnOwnThread&) = delete;

 private:
  bool before_;
};

}  // namespace tn
